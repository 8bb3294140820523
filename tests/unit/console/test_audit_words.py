"""The audit log in words."""

from __future__ import annotations

import pytest

from matchpod.console.audit_words import AuditLine, audit_lines, browser_words
from matchpod.service.access.audit import COMMAND_LINE, Action, AuditItem

KEYS = {"key_1": "ci (mk_live_abcd…)"}


def line(**fields: str) -> AuditLine:
    empty = {"id": "act_1", "at": "2026", "actor": "ses_1", "action": "", "target": "", "detail": ""}
    item = AuditItem(actor_name=None, **{**empty, **fields})
    log_ins = {"ses_1": "with key_1", "ses_2": "with a link", "ses_4": "with key_1, 7 times"}
    return audit_lines([item], log_ins=log_ins, key_names=KEYS, people={"ses_5": "Ann", "ses_6": "Bo"})[0]


@pytest.mark.parametrize("action", Action)
def test_every_act_has_words(action: Action) -> None:
    found = line(action=action, target="id").address
    assert line(action=action).what == action.words
    assert (found != "") == (action.target is not None)


def test_act_of_a_newer_version_is_shown_too() -> None:
    assert line(action="coffee_made", target="cup_1").what == "coffee made"
    assert line(action="coffee_made", target="cup_1").address == ""


@pytest.mark.parametrize(
    ("actor", "who", "session_id"),
    [
        ("ses_1", "ci (mk_live_abcd…)", "ses_1"),
        ("ses_2", "a link", "ses_2"),
        ("ses_3", "", "ses_3"),
        ("ses_4", "ci (mk_live_abcd…)", "ses_4"),
        ("ses_5", "Ann", "ses_5"),
        ("key_1", "ci (mk_live_abcd…)", ""),
        ("key_2", "key_2", ""),
        (COMMAND_LINE, COMMAND_LINE, ""),
    ],
)
def test_actor_is_named_by_what_they_logged_in_with(actor: str, who: str, session_id: str) -> None:
    found = line(actor=actor, action=Action.MATCH_CANCELED)
    assert (found.who, found.session_id) == (who, session_id)


@pytest.mark.parametrize(
    ("actor", "detail", "shown"),
    [
        ("ses_1", "with key_1", ""),
        ("ses_4", "with key_1, 7 times", "7 times"),
        ("ses_2", "with a link", ""),
        ("ses_5", "with a link, for Ann, as referee", "as referee"),
        ("ses_6", "with a link, for Bo", ""),
    ],
)
def test_log_in_shows_how_often_it_was_repeated_or_the_role(actor: str, detail: str, shown: str) -> None:
    assert line(actor=actor, action=Action.LOGGED_IN, detail=detail).detail == shown


@pytest.mark.parametrize(
    ("user_agent", "shown"),
    [
        ("Mozilla/5.0 (X11; Linux x86_64; rv:145.0) Gecko/20100101 Firefox/145.0", "Firefox 145, Linux"),
        (
            "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0"
            " Safari/537.36 Edg/142.0.0.0",
            "Edge 142, Windows",
        ),
        (
            "Mozilla/5.0 (Linux; Android 10; K) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 Mobile"
            " Safari/537.36",
            "Chrome 142, Android",
        ),
        (
            "Mozilla/5.0 (iPhone; CPU iPhone OS 18_7 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko)"
            " Version/26.0 Mobile/15E148 Safari/604.1",
            "Safari 26, iPhone",
        ),
        ("curl/8.5.0", "curl/8.5.0"),
        ("", ""),
    ],
)
def test_browser_is_named(user_agent: str, shown: str) -> None:
    assert browser_words(user_agent) == shown


def test_targets_have_addresses() -> None:
    assert line(action=Action.MATCH_CREATED, target="srv_1").address == "/console/matches/srv_1"
    assert line(action=Action.KEY_REVOKED, target="key_1").address == "/console/access#key_1"
    assert line(action=Action.MATCH_CREATED).address == ""
