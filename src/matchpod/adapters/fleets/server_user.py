"""Look up the user that game servers run as, if this is not the user of the service."""

from __future__ import annotations

import os
import pwd

import msgspec


class ServerUser(msgspec.Struct, frozen=True, kw_only=True):
    """A user of this machine. `name` and `home` are None if the uid has no entry in the user database."""

    uid: int
    gid: int
    groups: tuple[int, ...] = ()
    name: str | None = None
    home: str | None = None

    @property
    def environment(self) -> dict[str, str]:
        named = {"USER": self.name, "LOGNAME": self.name, "HOME": self.home}
        return {name: value for name, value in named.items() if value is not None}


def find_user(name_or_uid: str) -> ServerUser | None:
    """Return the user with this name or uid; None if the service itself runs as this user.

    Raise ValueError if there is no such user, or if the service may not start servers as this user.
    """
    is_number = name_or_uid.isascii() and name_or_uid.isdigit()
    try:
        entry = pwd.getpwuid(int(name_or_uid)) if is_number else pwd.getpwnam(name_or_uid)
    except (KeyError, OverflowError):
        if not is_number or int(name_or_uid) >= 2**32 - 1:
            raise ValueError(f"there is no user {name_or_uid}") from None
        # Common in containers: the uid has no entry in the user database. Use the same number as the gid.
        user = ServerUser(uid=int(name_or_uid), gid=int(name_or_uid))
    else:
        groups = tuple(os.getgrouplist(entry.pw_name, entry.pw_gid))
        user = ServerUser(
            uid=entry.pw_uid, gid=entry.pw_gid, groups=groups, name=entry.pw_name, home=entry.pw_dir or None
        )
    if user.uid == os.geteuid():
        return None
    if os.geteuid() != 0:
        raise ValueError(f"only root can start servers as another user, and the service runs as uid {os.geteuid()}")
    return user
