"""Each failed match has one sentence from a closed set, which contains nothing internal."""

from __future__ import annotations

import re

import pytest

from matchpod.core.effects import CancelReason
from matchpod.core.failures import FAILURE_REASONS, SENTENCES, Failure, sentence


@pytest.mark.parametrize("reason", CancelReason)
def test_only_failed_matches_have_a_sentence(reason: CancelReason) -> None:
    assert (sentence(reason, None) is not None) == (reason in FAILURE_REASONS)


@pytest.mark.parametrize("failure", Failure)
def test_each_failure_has_a_sentence_of_its_own(failure: Failure) -> None:
    found = sentence(CancelReason.SERVER_FAILED, failure)
    assert found != sentence(CancelReason.SERVER_FAILED, None)
    assert SENTENCES.count(found or "") == 1


def test_finished_match_has_no_sentence() -> None:
    assert sentence(None, Failure.START_FAILED) is None


@pytest.mark.parametrize("text", SENTENCES)
def test_sentences_contain_no_address_path_or_number(text: str) -> None:
    assert re.fullmatch(r"[A-Z][A-Za-z ,.]+\.", text)
