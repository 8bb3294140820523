"""Each failed match has one sentence from a closed set, which contains nothing internal."""

from __future__ import annotations

import re

from matchpod.core.effects import CancelReason
from matchpod.core.failures import FAILURE_REASONS, SENTENCES, Failure, sentence


def test_only_failed_matches_have_a_sentence() -> None:
    assert sentence(None, Failure.START_FAILED) is None
    for reason in CancelReason:
        assert (sentence(reason, None) is not None) == (reason in FAILURE_REASONS)


def test_each_failure_has_a_sentence_of_its_own() -> None:
    for failure in Failure:
        found = sentence(CancelReason.SERVER_FAILED, failure)
        assert found != sentence(CancelReason.SERVER_FAILED, None)
        assert SENTENCES.count(found or "") == 1


def test_sentences_contain_no_address_path_or_number() -> None:
    for text in SENTENCES:
        assert re.fullmatch(r"[A-Z][A-Za-z ,.]+\.", text)
