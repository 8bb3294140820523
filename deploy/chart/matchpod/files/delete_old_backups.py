"""Delete all backups in a folder but the newest ones: FOLDER KEEP."""

import pathlib
import sys

folder, keep = pathlib.Path(sys.argv[1]), int(sys.argv[2])
backups = sorted(path for path in folder.iterdir() if path.suffix in {".tar", ".dump"})
for path in backups[:-keep]:
    path.unlink()
    print("deleted", path)
print("kept", min(keep, len(backups)), "backups; the newest is", backups[-1])
