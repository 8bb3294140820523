"""Options of a fleet in Agones are checked, and its secret is read and hidden."""

from __future__ import annotations

from pathlib import Path

import pytest

from matchpod.adapters.fleets.agones_options import (
    FLEET_LABEL,
    AgonesOptions,
    is_label_value,
    is_object_name,
    read_fleet_secret,
    read_previous_fleet_secret,
)

SECRET = b"sixteen bytes or more"


def options(**changes: object) -> AgonesOptions:
    return AgonesOptions(**{"fleet": "cs2", "region": "eu", "owner": "mp-1", "read_secret": lambda: SECRET, **changes})  # type: ignore[arg-type]


def test_servers_are_selected_by_the_label_of_the_fleet_unless_labels_are_given() -> None:
    assert options().server_labels == {FLEET_LABEL: "cs2"}
    assert options(selector={"tier": "a"}).server_labels == {"tier": "a"}


def test_label_values() -> None:
    for value in ("srv_01hx2m3n4p5q6r7s8t9v0w1x2y", "a", "A.b-c_d", "x" * 63):
        assert is_label_value(value), value
    for value in ("", "-a", "a-", "_a", "a b", "a/b", "ä", "a\n", "x" * 64):
        assert not is_label_value(value), value


@pytest.mark.parametrize(
    ("name", "is_valid"), [("cs2-eu-x7k2p", True), ("CS2", False), ("../x", False), ("a?b", False)]
)
def test_names_of_objects(name: str, is_valid: bool) -> None:
    assert is_object_name(name) is is_valid


@pytest.mark.parametrize("changes", [{"fleet": "CS 2"}, {"region": "eu west"}, {"owner": ""}])
def test_option_that_kubernetes_would_reject_is_rejected(changes: dict[str, str]) -> None:
    with pytest.raises(ValueError, match="not a valid"):
        options(**changes)


def test_secret_is_read_without_white_space_around_it(tmp_path: Path) -> None:
    (tmp_path / "secret").write_bytes(SECRET + b"\n")
    assert read_fleet_secret(tmp_path / "secret") == SECRET


def test_unusable_secret_is_reported(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"The fleet secret .*/secret cannot be read: No such file"):
        read_fleet_secret(tmp_path / "secret")
    (tmp_path / "secret").write_bytes(b"short\n")
    with pytest.raises(ValueError, match="it has 5 bytes, at least 16 are needed"):
        read_fleet_secret(tmp_path / "secret")


@pytest.mark.parametrize("content", [None, b"", b"\n"])
def test_previous_secret_may_be_missing_or_empty(tmp_path: Path, content: bytes | None) -> None:
    if content is not None:
        (tmp_path / "previous").write_bytes(content)
    assert read_previous_fleet_secret(tmp_path / "previous") is None
    assert read_previous_fleet_secret(None) is None


def test_previous_secret_that_cannot_be_used_is_reported(tmp_path: Path) -> None:
    (tmp_path / "previous").write_bytes(b"short")
    with pytest.raises(ValueError, match=r"/previous cannot be used: it has 5 bytes"):
        read_previous_fleet_secret(tmp_path / "previous")
    with pytest.raises(ValueError, match="cannot be read: Is a directory"):
        read_previous_fleet_secret(tmp_path)


@pytest.mark.parametrize(
    ("previous", "secrets"), [(None, (SECRET,)), (b"another secret", (SECRET, b"another secret")), (SECRET, (SECRET,))]
)
def test_previous_secret_follows_the_current_one(previous: bytes | None, secrets: tuple[bytes, ...]) -> None:
    assert options(read_previous_secret=lambda: previous).read_secrets() == secrets
