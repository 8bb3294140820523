"""The secret of a fleet, the password derived from it, and the files that hold them."""

from __future__ import annotations

import base64
import hashlib
import hmac
import stat
from pathlib import Path

import pytest

from matchpod_gameserver import password
from matchpod_gameserver.log import FatalError
from matchpod_gameserver.password import bootstrap_password, read_password, read_secret, write_password


def test_password_is_the_keyed_hash_of_the_name_without_padding() -> None:
    expected = base64.urlsafe_b64encode(hmac.new(b"s" * 32, b"cs2-eu-abcde", hashlib.sha256).digest()).decode()
    assert bootstrap_password(b"s" * 32, "cs2-eu-abcde") == expected.rstrip("=")
    # printf cs2-eu-abcde | openssl dgst -sha256 -hmac ssssssssssssssssssssssssssssssss -binary | base64
    assert bootstrap_password(b"s" * 32, "cs2-eu-abcde") == "fpc6LTPDUnYc7P6rbFEyXx4PKHzI6EIG8HIqs86s31Q"
    assert len(expected) == 44


def test_cfg_file_replaces_an_older_one_and_does_not_follow_links(tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.write_text("unchanged")
    older = Path(password.write_cfg(str(tmp_path), "x", "older"))
    older.unlink()
    older.symlink_to(target)
    path = Path(password.write_cfg(str(tmp_path), "x", "new"))
    assert path == older
    assert path.read_text() == 'rcon_password "new"\n'
    assert not path.is_symlink()
    assert target.read_text() == "unchanged"


def test_cfg_folder_that_does_not_exist_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(FatalError, match=r"cannot be written into .*/none: No such file or directory$"):
        password.write_cfg(str(tmp_path / "none"), "x", "y")


def test_secret_is_read_without_the_line_break_at_its_end(tmp_path: Path) -> None:
    file = tmp_path / "secret"
    file.write_bytes(b"0123456789abcdef\n")
    assert read_secret(str(file)) == b"0123456789abcdef"


@pytest.mark.parametrize(("content", "message"), [(b"", "has 0 bytes"), (b"  0123456789abcde \n", "has 15 bytes")])
def test_short_secret_is_rejected(tmp_path: Path, content: bytes, message: str) -> None:
    file = tmp_path / "secret"
    file.write_bytes(content)
    with pytest.raises(FatalError, match=f"{message}; it needs 16 or more"):
        read_secret(str(file))


def test_missing_secret_file_is_one_sentence() -> None:
    with pytest.raises(FatalError, match=r"^the secret of the fleet cannot be read from /none: No such file"):
        read_secret("/none")


def test_derived_password_is_read_as_it_was_written(tmp_path: Path) -> None:
    file = tmp_path / "password"
    file.write_text("an older one")
    write_password(str(file), bootstrap_password(b"s" * 32, "cs2-eu-abcde"))
    assert read_password(str(file)) == bootstrap_password(b"s" * 32, "cs2-eu-abcde")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


@pytest.mark.parametrize("content", [b"", b"a secret of a fleet", b"x" * 42, b"x" * 44, b'";quit' + b"x" * 37])
def test_file_that_has_no_derived_password_is_rejected(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "password").write_bytes(content)
    with pytest.raises(FatalError, match="has no RCON password that `derive-password` has written"):
        read_password(str(tmp_path / "password"))
