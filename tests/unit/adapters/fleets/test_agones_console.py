"""The first password of a waiting game server follows from its name and the fleet secret."""

from __future__ import annotations

from matchpod.adapters.fleets.agones_console import ConsoleAddress, first_password


def test_first_password_is_a_keyed_hash_that_images_compute_too() -> None:
    assert first_password(b"a fleet secret", "cs2-eu-1") == "89NrddsMrTjDYiLz1FL4Mpk-AGNJzfeVlupWIuRquzQ"


def test_passwords_are_not_shown() -> None:
    address = ConsoleAddress("192.0.2.1", 27015, first_passwords=("hidden",), match_password="hidden")
    assert "hidden" not in repr(address)
