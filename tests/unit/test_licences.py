"""A dependency with a licence that was not accepted is found."""

from __future__ import annotations

from email import message_from_string

import pytest

from scripts.check_licences import find_faults


@pytest.mark.parametrize(
    ("metadata", "fault"),
    [
        ("License-Expression: MIT\n", None),
        ("License-Expression: GPL-3.0-only OR BSD-3-Clause\n", None),
        ("License-Expression: MIT AND (GPL-3.0-only OR AGPL-3.0-only)\n", "GPL-3.0-only"),
        ("Classifier: License :: OSI Approved :: BSD License\n", None),
        ("Classifier: License :: Other/Proprietary License\n", "Other/Proprietary License"),
        ("License: own licence\n", "own licence"),
        ("Name: x\n", "no licence"),
    ],
)
def test_licence_that_was_not_accepted_is_found(metadata: str, fault: str | None) -> None:
    assert find_faults({"x": message_from_string(metadata)}) == ([f"x: {fault}"] if fault else [])
