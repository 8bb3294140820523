"""Define a visit: a request to the console, its user and the user's rights, and methods that build the response."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from urllib.parse import parse_qsl

import msgspec

from matchpod.console.deps import ConsoleDeps
from matchpod.console.notices import ACKNOWLEDGED, NOTICES, notice_header, read_notice
from matchpod.console.rendering import page, redirect
from matchpod.core.errors import ForbiddenError, InvalidParamsError
from matchpod.service.access.console_sessions import ConsoleUser
from matchpod.service.identity.principals import Principal, Role, Scope
from matchpod.service.regions.alerts import RegionAlert
from matchpod.web.endpoint import Call
from matchpod.web.http.responses import Header, Response
from matchpod.web.query_strings import query_of

MAX_FORM_BYTES = 64 * 1024
MAX_FORM_FIELDS = 200
FORM_TYPE = "application/x-www-form-urlencoded"

ORGANIZATION_ONLY = (
    "This page belongs to an organization, and you are logged in as operator. Log in with a key of the organization."
)
OPERATOR_ONLY = "This page is for operators. Print a link with `matchpod console --operator`."
READER_ONLY = "Your key may not read matches. Log in with a key that has the scope servers:read."
ACT_ONLY = "You may only read. Log in as referee, or with a key of an owner or admin with the scope servers:write."
MANAGER_ONLY = "This is for owners and admins. Log in with a key of an owner or admin with the scope servers:write."
OWNER_ONLY = "Only owners manage keys and secrets. Log in with a key of role owner that has all scopes."


class Who(StrEnum):
    ANYONE = "anyone"
    PERSON = "person"
    """All users with a session, including operators."""
    MEMBER = "member"
    """All users of an organization who may read matches."""
    REFEREE = "referee"
    """Users who may request actions on matches, acknowledge matches, and send callbacks again."""
    MANAGER = "manager"
    """Users who may also create and cancel matches, and rule on them."""
    OWNER = "owner"
    """Owners whose key has all scopes, because a key created by them can have any right."""
    OPERATOR = "operator"


class Visit(msgspec.Struct, kw_only=True):
    """A request of a user who has logged in."""

    deps: ConsoleDeps
    call: Call
    user: ConsoleUser
    region_alerts: Sequence[RegionAlert] = ()
    """Alerts about regions for this page. The wall has none here, because it updates its own alerts."""
    menu: Sequence[tuple[str, str]] = ()
    """The menu: pairs of URL and name of the pages that the user may open."""

    @property
    def principal(self) -> Principal:
        """The user's rights in the organization. ForbiddenError for operators, who have no organization."""
        if self.user.principal is None:
            raise ForbiddenError(ORGANIZATION_ONLY)
        return self.user.principal

    def may(self, who: Who) -> bool:
        """True if the user has this role."""
        return self.fault(who) is None

    def fault(self, who: Who) -> str | None:
        """Return why the user does not have this role; None if the user has it."""
        principal = self.user.principal
        if who in (Who.ANYONE, Who.PERSON):
            return None
        if who is Who.OPERATOR:
            return None if self.user.is_operator else OPERATOR_ONLY
        if principal is None:
            return ORGANIZATION_ONLY
        if who is Who.OWNER:
            is_owner = principal.role is Role.OWNER and principal.scopes == frozenset(Scope)
            return None if is_owner else OWNER_ONLY
        if Scope.SERVERS_READ not in principal.scopes:
            return READER_ONLY
        if who is Who.REFEREE and not principal.may_act:
            return ACT_ONLY
        return MANAGER_ONLY if who is Who.MANAGER and not principal.may_create else None

    def query(self) -> dict[str, str]:
        """Return the query parameters of the request, without empty values: forms send their empty fields too."""
        return {name: value for name, value in query_of(self.call) if value}

    async def form(self) -> dict[str, str]:
        return await read_form(self.call)

    def page(
        self,
        template: str,
        *,
        status: int = 200,
        headers: tuple[Header, ...] = (),
        notices: Mapping[str, str] = NOTICES,
        **values: object,
    ) -> Response:
        """Render a page with this user's menu and heading, and with a notice if one is due."""
        notice = read_notice(self.deps.origins, self.call, notices)
        return page(
            template,
            status=status,
            headers=(*headers, *notice.headers),
            user=self.user,
            may_act=self.may(Who.REFEREE),
            may_create=self.may(Who.MANAGER),
            menu=self.menu,
            region_alerts=self.region_alerts,
            path=self.call.scope["path"],
            version=self.deps.services.version,
            now_ms=self.deps.now_ms(),
            notice=notice.text,
            undo_ms=notice.number if notice.word == ACKNOWLEDGED else 0,
            **values,
        )

    def done(self, path: str, notice: str, *headers: Header, number: int = 0) -> Response:
        """Return a redirect to a page that shows, once, the notice with this key."""
        return redirect(path, notice_header(self.deps.origins, path, notice, number), *headers)


async def read_form(call: Call) -> dict[str, str]:
    """Return the fields of a submitted form; InvalidParamsError if the body is not a form."""
    kind = (call.header(b"content-type") or "").partition(";")[0].strip().lower()
    body = await call.read_body(MAX_FORM_BYTES)
    if kind != FORM_TYPE:
        raise InvalidParamsError(f"The body must be a form with the content type {FORM_TYPE}.")
    try:
        pairs = parse_qsl(body.decode("ascii"), keep_blank_values=True, max_num_fields=MAX_FORM_FIELDS, errors="strict")
    except ValueError as exc:
        raise InvalidParamsError("The form cannot be parsed.") from exc
    return dict(pairs)
