"""List the backups in a folder, and link to the one to restore: FOLDER NAME SUFFIX LINK. `latest` is the newest."""

import pathlib
import sys

folder, name, suffix, link = pathlib.Path(sys.argv[1]), sys.argv[2], sys.argv[3], pathlib.Path(sys.argv[4])
backups = sorted(path.name for path in folder.iterdir() if path.suffix == suffix)
for backup in backups:
    print(backup, (folder / backup).stat().st_size, "bytes")
found = backups[-1] if name == "latest" and backups else name
if found not in backups:
    sys.exit(f"there is no backup {name}; backups: {', '.join(backups) or 'none'}")
link.symlink_to(folder / found)
print("to be restored:", found)
