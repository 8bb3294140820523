"""Give a complete backup its final name, and delete what is incomplete or too old: FOLDER NAME SUFFIX KEEP.

A dump that fails leaves a file behind. It must not count as a backup: it would take the place of a good one.
"""

import pathlib
import sys

folder, name, suffix, keep = pathlib.Path(sys.argv[1]), sys.argv[2], sys.argv[3], int(sys.argv[4])
backup = folder / f"{name}{suffix}"
(folder / f"{name}.part").rename(backup)
if not backup.stat().st_size:
    backup.unlink()
    sys.exit(f"{backup} is empty; older backups were left alone")
backup.chmod(0o600)
backups = sorted(path for path in folder.iterdir() if path.suffix == suffix)
for path in [*folder.glob("*.part"), *backups[:-keep]]:
    path.unlink()
    print("deleted", path)
print("kept", len(backups[-keep:]), "backups; the newest is", backup)
