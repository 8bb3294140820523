"""Secrets are unreadable without the key, and the key is made once."""

from __future__ import annotations

import base64
import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from matchpod.adapters.vault import KEY_BYTES, KeyFileVault, VaultKeyError

KEY = bytes(range(KEY_BYTES))


@pytest.mark.parametrize("secret", ["", "hunter2", "pässwörd ✓", "x" * 10_000])
def test_what_was_sealed_is_opened(secret: str) -> None:
    assert KeyFileVault(KEY).open(KeyFileVault(KEY).seal(secret)) == secret


def test_the_same_secret_is_never_sealed_alike_nor_readable() -> None:
    vault = KeyFileVault(KEY)
    sealed = {vault.seal("hunter2") for _ in range(50)}
    assert len(sealed) == 50
    assert not any(b"hunter2" in each for each in sealed)


def test_every_changed_byte_is_noticed() -> None:
    vault = KeyFileVault(KEY)
    sealed = vault.seal("hunter2")
    for at in range(len(sealed)):
        changed = sealed[:at] + bytes([sealed[at] ^ 1]) + sealed[at + 1 :]
        with pytest.raises(ValueError, match=r"sealed"):
            vault.open(changed)


def test_every_shortened_or_longer_text_is_noticed() -> None:
    vault = KeyFileVault(KEY)
    sealed = vault.seal("hunter2")
    for text in [sealed[:end] for end in range(len(sealed))] + [sealed + b"\0"]:
        with pytest.raises(ValueError, match=r"sealed"):
            vault.open(text)


def test_another_key_opens_nothing() -> None:
    with pytest.raises(ValueError, match="another key"):
        KeyFileVault(bytes(KEY_BYTES)).open(KeyFileVault(KEY).seal("hunter2"))


def test_the_key_file_is_made_on_first_use_for_its_owner_only(tmp_path: Path) -> None:
    path = tmp_path / "vault.key"
    sealed = KeyFileVault.from_file(path).seal("hunter2")
    assert path.stat().st_mode & 0o777 == 0o600
    assert len(path.read_bytes()) == KEY_BYTES
    assert list(tmp_path.iterdir()) == [path]
    assert KeyFileVault.from_file(path).open(sealed) == "hunter2"


def test_a_key_that_is_there_is_used_and_stays(tmp_path: Path) -> None:
    path = tmp_path / "vault.key"
    path.write_bytes(KEY)
    assert KeyFileVault.from_file(path).open(KeyFileVault(KEY).seal("hunter2")) == "hunter2"
    assert path.read_bytes() == KEY


def test_two_first_users_get_the_same_key(tmp_path: Path) -> None:
    path = tmp_path / "vault.key"
    vaults: list[KeyFileVault] = []
    threads = [threading.Thread(target=lambda: vaults.append(KeyFileVault.from_file(path))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    sealed = vaults[0].seal("hunter2")
    assert [vault.open(sealed) for vault in vaults] == ["hunter2"] * 8
    assert list(tmp_path.iterdir()) == [path]


def test_a_key_put_there_by_another_process_meanwhile_is_not_overwritten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "vault.key"
    link = os.link

    def too_late(source: Path, target: Path) -> None:
        path.write_bytes(KEY)
        link(source, target)

    monkeypatch.setattr(os, "link", too_late)
    assert KeyFileVault.from_file(path).open(KeyFileVault(KEY).seal("hunter2")) == "hunter2"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("size", [0, 31, 33, 5000])
def test_a_file_of_another_size_is_refused_and_stays(tmp_path: Path, size: int) -> None:
    path = tmp_path / "vault.key"
    path.write_bytes(b"k" * size)
    with pytest.raises(VaultKeyError, match="exactly 32 bytes"):
        KeyFileVault.from_file(path)
    assert path.read_bytes() == b"k" * size


def test_a_folder_that_is_missing_and_a_folder_as_key_are_clear_errors(tmp_path: Path) -> None:
    with pytest.raises(VaultKeyError, match="No such file"):
        KeyFileVault.from_file(tmp_path / "missing" / "vault.key")
    with pytest.raises(VaultKeyError, match="directory"):
        KeyFileVault.from_file(tmp_path)


@pytest.mark.parametrize("encode", [base64.b64encode, base64.urlsafe_b64encode])
def test_a_key_can_be_given_as_text_of_either_alphabet(encode: Callable[[bytes], bytes]) -> None:
    key = b"\xfb\xff" * 16
    assert KeyFileVault.from_text(f" {encode(key).decode()}\n").open(KeyFileVault(key).seal("hunter2")) == "hunter2"


@pytest.mark.parametrize("text", ["", "not base64!", "aGFsbG8=", base64.b64encode(b"k" * 33).decode(), "é"])
def test_a_text_that_is_no_key_is_refused_without_showing_it(text: str) -> None:
    with pytest.raises(VaultKeyError) as caught:
        KeyFileVault.from_text(text)
    assert not text or text not in str(caught.value)
