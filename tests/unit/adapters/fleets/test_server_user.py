"""The user of game servers is found by name or number, or the reason why not is clear."""

from __future__ import annotations

import os
import pwd

import pytest

from matchpod.adapters.fleets.server_user import ServerUser, find_user

UNUSED = 54321
"""A number without an entry."""


def test_user_of_the_service_needs_no_rights(monkeypatch: pytest.MonkeyPatch) -> None:
    assert find_user(str(os.geteuid())) is None
    monkeypatch.setattr(os, "geteuid", lambda: UNUSED)
    assert find_user(str(UNUSED)) is None


def test_user_is_found_by_name_and_by_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    entry = next(entry for entry in pwd.getpwall() if entry.pw_uid != 0)
    found = find_user(entry.pw_name)
    assert found is not None
    assert (found.uid, found.gid, found.name) == (entry.pw_uid, entry.pw_gid, entry.pw_name)
    assert entry.pw_gid in found.groups
    assert found.environment == {"USER": entry.pw_name, "LOGNAME": entry.pw_name, "HOME": entry.pw_dir}
    assert find_user(str(entry.pw_uid)) is not None


def test_number_without_an_entry_is_a_user_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    found = find_user(str(UNUSED))
    assert found == ServerUser(uid=UNUSED, gid=UNUSED)
    assert found.environment == {}


@pytest.mark.parametrize("name", ["no-such-user", str(2**32 - 1), str(10**30)])
def test_unknown_user_is_rejected(name: str) -> None:
    with pytest.raises(ValueError, match=f"^there is no user {name}$"):
        find_user(name)


def test_another_user_needs_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: UNUSED)
    with pytest.raises(ValueError, match=f"^only root can .* the service runs as uid {UNUSED}$"):
        find_user("root")
