"""The JSON of rounds."""

from __future__ import annotations

import msgspec

from matchpod.core.views.round_shapes import DamagePair


def test_fields_are_in_camel_case_and_unknown_victims_are_null() -> None:
    pair = DamagePair(attacker_steam_id="1", victim_steam_id=None, damage=3)
    assert msgspec.json.encode(pair) == b'{"attackerSteamId":"1","victimSteamId":null,"damage":3}'
