"""Define a visit: one request to the console with its user, the user's rights, and methods that build the response."""

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
    "This page belongs to an organization, and you are logged in as operator. Log in with one of its keys."
)
OPERATOR_ONLY = "This page is for operators. Print a link with `matchpod console --operator`."
READER_ONLY = "Your key may not read matches. Log in with one that has the scope servers:read."
ACT_ONLY = "You may only read. Log in as referee, or with a key of an owner or admin that has the scope servers:write."
MANAGER_ONLY = "This is for owners and admins. Log in with a key of one that has the scope servers:write."
OWNER_ONLY = "Only owners manage keys and secrets. Log in with a key of role owner that has all scopes."


class Who(StrEnum):
    ANYONE = "anyone"
    PERSON = "person"
    """Every logged-in user, including operators."""
    MEMBER = "member"
    """Every user of an organization."""
    REFEREE = "referee"
    """Users who may request actions on matches, acknowledge matches, and send callbacks again."""
    MANAGER = "manager"
    """Users who may also create, cancel and rule on matches."""
    OWNER = "owner"
    """Owners of an organization with all scopes, so that no key can give more rights than it has."""
    OPERATOR = "operator"


class Visit(msgspec.Struct, kw_only=True):
    """One request of a logged-in user."""

    deps: ConsoleDeps
    call: Call
    user: ConsoleUser
    region_alerts: Sequence[RegionAlert] = ()
    """Alerts about regions, shown on every page except the wall, which updates its own alerts."""
    menu: Sequence[tuple[str, str]] = ()
    """URLs and names of the pages that the user may open."""

    @property
    def principal(self) -> Principal:
        """The user's rights in the organization; ForbiddenError for operators."""
        if self.user.principal is None:
            raise ForbiddenError(ORGANIZATION_ONLY)
        return self.user.principal

    def may(self, who: Who) -> bool:
        """Return whether the user has this role."""
        return self.fault(who) is None

    def fault(self, who: Who) -> str | None:
        """Return why the user does not have this role; None if they have it."""
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
        """Return the parameters of the request; empty ones, which forms send too, are left out."""
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
        """Return a page with the menu and the heading for this user."""
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
        """Return a redirect to a page that shows the notice with this key once."""
        return redirect(path, notice_header(self.deps.origins, path, notice, number), *headers)


async def read_form(call: Call) -> dict[str, str]:
    """Return the fields of a form; InvalidParamsError if the body is not a form."""
    kind = (call.header(b"content-type") or "").partition(";")[0].strip().lower()
    body = await call.read_body(MAX_FORM_BYTES)
    if kind != FORM_TYPE:
        raise InvalidParamsError(f"A form is expected, with the content type {FORM_TYPE}.")
    try:
        pairs = parse_qsl(body.decode("ascii"), keep_blank_values=True, max_num_fields=MAX_FORM_FIELDS, errors="strict")
    except ValueError as exc:
        raise InvalidParamsError("The form cannot be read.") from exc
    return dict(pairs)
