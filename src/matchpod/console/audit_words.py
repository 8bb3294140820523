"""Describe the entries of the audit log in words, with links to the pages of their targets."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from matchpod.service.access.actor_names import is_session
from matchpod.service.access.audit import Action, AuditItem, Target, begun_with

_PAGES: Final = {
    Target.MATCH: "/console/matches/",
    Target.CALLBACK: "/console/deliveries/",
    Target.WEBHOOK: "/console/webhooks/",
    Target.KEY: "/console/access#",
    Target.REGION: "/console/regions#",
}
_BROWSERS: Final = tuple(
    (name, re.compile(rf"\b{mark}/([0-9]{{1,4}})"))
    for name, mark in (
        ("Edge", "Edg(?:A|iOS)?"),
        ("Opera", "OPR"),
        ("Firefox", "(?:Firefox|FxiOS)"),
        ("Chrome", "(?:HeadlessChrome|Chrome|CriOS)"),
        ("Safari", "Version(?=.*Safari)"),
    )
)
"""Browser names, each with a pattern for its user agents. Edge and Opera come first, because their user agents also
match the pattern of Chrome."""
_SYSTEMS: Final = (
    ("Android", "Android"),
    ("iPhone", "iPhone"),
    ("iPad", "iPad"),
    ("Windows", "Windows"),
    ("Mac OS", "macOS"),
    ("Linux", "Linux"),
)
_ACTIONS: Final[Mapping[str, Action]] = {action.value: action for action in Action}


class AuditLine(msgspec.Struct, frozen=True, kw_only=True):
    """An entry of the audit log as a row of the page."""

    item: AuditItem
    who: str
    """The person or, if unknown, what started their session (empty if that is unknown too); for a program, the name of
    its API key; for a command, `command line`."""
    session_id: str
    """Id of the session; empty for the command line, and for programs with an API key."""
    what: str
    address: str
    """URL path of the target's page; empty if the target has no page."""
    detail: str


def audit_lines(
    items: Iterable[AuditItem],
    *,
    log_ins: Mapping[str, str],
    key_names: Mapping[str, str],
    people: Mapping[str, str],
) -> list[AuditLine]:
    """Return entries of the audit log as rows; `key_names` contains the names of API keys, by id.

    `log_ins` contains what started each session, and `people` the names of people who used a personal link, both by
    session id.
    """
    return [
        AuditLine(
            item=item,
            who=people.get(item.actor) or _who(item, log_ins, key_names),
            session_id=item.actor if is_session(item.actor) else "",
            what=_ACTIONS[item.action].words if item.action in _ACTIONS else item.action.replace("_", " "),
            address=_address(item),
            detail=_log_in(item, people) if item.action == Action.LOGGED_IN else item.detail,
        )
        for item in items
    ]


def _address(item: AuditItem) -> str:
    kind = _ACTIONS[item.action].target if item.action in _ACTIONS else None
    return "" if kind is None or not item.target else _PAGES[kind] + item.target


def session_words(begun: str, key_names: Mapping[str, str]) -> str:
    """Return what started a session: `a link`, or the name of a key. `begun` is the detail of its log-in entry."""
    what = begun_with(begun)
    return key_names.get(what, what)


def browser_words(user_agent: str) -> str:
    """Return browser and system, such as `Firefox 145, Linux`; for an unknown browser, the user agent itself."""
    browser = next(((name, found[1]) for name, mark in _BROWSERS if (found := mark.search(user_agent))), None)
    system = next((name for mark, name in _SYSTEMS if mark in user_agent), "")
    return user_agent if browser is None else f"{' '.join(browser)}{', ' if system else ''}{system}"


def _log_in(item: AuditItem, people: Mapping[str, str]) -> str:
    """Return what other columns do not show of a log-in's detail: the number of log-ins, or the person's role."""
    return item.detail.partition(", ")[2].removeprefix(f"for {people.get(item.actor, '')}").removeprefix(", ")


def _who(item: AuditItem, log_ins: Mapping[str, str], key_names: Mapping[str, str]) -> str:
    if item.actor in log_ins:
        return session_words(log_ins[item.actor], key_names)
    return "" if is_session(item.actor) else key_names.get(item.actor, item.actor)
