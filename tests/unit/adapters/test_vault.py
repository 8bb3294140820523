"""Secrets cannot be read without the key, and the key is created once."""

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
def test_sealed_secret_can_be_opened(secret: str) -> None:
    assert KeyFileVault(KEY).open(KeyFileVault(KEY).seal(secret)) == secret


def test_sealing_a_secret_twice_gives_different_unreadable_bytes() -> None:
    vault = KeyFileVault(KEY)
    sealed = {vault.seal("hunter2") for _ in range(50)}
    assert len(sealed) == 50
    assert not any(b"hunter2" in each for each in sealed)


def test_any_change_is_detected() -> None:
    vault = KeyFileVault(KEY)
    sealed = vault.seal("hunter2")
    for index in range(len(sealed)):
        for changed in (sealed[:index] + bytes([sealed[index] ^ 1]) + sealed[index + 1 :], sealed[:index]):
            with pytest.raises(ValueError, match=r"sealed"):
                vault.open(changed)
    with pytest.raises(ValueError, match=r"sealed"):
        vault.open(sealed + b"\0")


def test_key_file_is_created_on_first_use_readable_only_by_its_owner(tmp_path: Path) -> None:
    path = tmp_path / "vault.key"
    sealed = KeyFileVault.from_file(path).seal("hunter2")
    assert path.stat().st_mode & 0o777 == 0o600
    assert len(path.read_bytes()) == KEY_BYTES
    assert list(tmp_path.iterdir()) == [path]
    assert KeyFileVault.from_file(path).open(sealed) == "hunter2"


def test_concurrent_first_uses_get_the_same_key(tmp_path: Path) -> None:
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


def test_key_created_concurrently_by_another_process_is_not_overwritten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "vault.key"
    link = os.link

    def link_after_other_process(source: Path, target: Path) -> None:
        path.write_bytes(KEY)
        link(source, target)

    monkeypatch.setattr(os, "link", link_after_other_process)
    assert KeyFileVault.from_file(path).open(KeyFileVault(KEY).seal("hunter2")) == "hunter2"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("size", [0, 31, 33, 5000])
def test_key_file_of_wrong_size_is_rejected_and_not_changed(tmp_path: Path, size: int) -> None:
    path = tmp_path / "vault.key"
    path.write_bytes(b"k" * size)
    with pytest.raises(VaultKeyError, match="exactly 32 bytes"):
        KeyFileVault.from_file(path)
    assert path.read_bytes() == b"k" * size


def test_missing_folder_and_folder_as_key_file_are_reported(tmp_path: Path) -> None:
    with pytest.raises(VaultKeyError, match="No such file"):
        KeyFileVault.from_file(tmp_path / "missing" / "vault.key")
    with pytest.raises(VaultKeyError, match="directory"):
        KeyFileVault.from_file(tmp_path)


@pytest.mark.parametrize("encode", [base64.b64encode, base64.urlsafe_b64encode])
def test_key_can_be_given_in_standard_and_url_safe_base64(encode: Callable[[bytes], bytes]) -> None:
    key = b"\xfb\xff" * 16
    assert KeyFileVault.from_text(f" {encode(key).decode()}\n").open(KeyFileVault(key).seal("hunter2")) == "hunter2"


def test_first_key_seals_and_all_keys_open() -> None:
    new, both = KeyFileVault(bytes(KEY_BYTES)), KeyFileVault(bytes(KEY_BYTES), KEY)
    assert both.open(KeyFileVault(KEY).seal("hunter2")) == "hunter2"
    assert both.open(new.seal("hunter2")) == "hunter2"
    assert new.open(both.seal("hunter2")) == "hunter2"
    with pytest.raises(ValueError, match="another key"):
        both.open(KeyFileVault(b"k" * KEY_BYTES).seal("hunter2"))


def test_resealed_secret_needs_the_first_key_only() -> None:
    old, new, both = KeyFileVault(KEY), KeyFileVault(bytes(KEY_BYTES)), KeyFileVault(bytes(KEY_BYTES), KEY)
    resealed = both.reseal(old.seal("hunter2"))
    assert resealed is not None
    assert new.open(resealed) == "hunter2"
    assert both.reseal(resealed) is None
    with pytest.raises(ValueError, match="another key"):
        new.reseal(old.seal("hunter2"))


def test_several_keys_are_given_with_commas_between_them() -> None:
    texts = [base64.b64encode(key).decode() for key in (bytes(KEY_BYTES), KEY)]
    vault = KeyFileVault.from_text(", ".join(texts))
    assert vault.open(KeyFileVault(KEY).seal("hunter2")) == "hunter2"
    assert KeyFileVault(bytes(KEY_BYTES)).open(vault.seal("hunter2")) == "hunter2"
    for text in (f"{texts[0]},", f",{texts[0]}", f"{texts[0]} {texts[1]}", f"{texts[0]},aGFsbG8="):
        with pytest.raises(VaultKeyError):
            KeyFileVault.from_text(text)


@pytest.mark.parametrize("text", ["", "not base64!", "aGFsbG8=", base64.b64encode(b"k" * 33).decode(), "é"])
def test_text_that_is_not_a_key_is_rejected_without_showing_it(text: str) -> None:
    with pytest.raises(VaultKeyError) as caught:
        KeyFileVault.from_text(text)
    assert not text or text not in str(caught.value)
