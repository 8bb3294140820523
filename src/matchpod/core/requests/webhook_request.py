"""Parse requests about webhooks: the bodies to create and change them, the query of deliveries, and ids in paths."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

import msgspec

from matchpod.core.faults import Fault, FaultCode, FieldPath
from matchpod.core.requests import field_rules as rules
from matchpod.core.requests import text_rules
from matchpod.core.requests.addresses import private_host
from matchpod.core.requests.callback_query import CallbackState
from matchpod.core.requests.history_query import DEFAULT_PAGE_SIZE, MAX_PAGE, MAX_PAGE_SIZE
from matchpod.core.requests.json_fields import AnyField, Faults, FieldRule, Fields, RequestField, Schema
from matchpod.core.requests.query_fields import QueryFields
from matchpod.core.requests.text_rules import printable
from matchpod.core.webhook_events import ALL_EVENTS, NEVER_IN, WebhookEvent, WebhookFormat

WEBHOOK_ID: Final = r"wh_[0-9A-Za-z]{26}"
DELIVERY_ID: Final = r"[0-9A-Za-z_-]{1,64}"
"""Pattern of delivery ids. It excludes NUL and lone surrogates, which the database does not accept."""

_NAMES: Final = ("page", "pageSize", "state", "since", "until")
_TYPES: Final = (ALL_EVENTS, *(event.value for event in WebhookEvent))


def _event_fault(text: str) -> Fault | None:
    return None if text in _TYPES else Fault(FaultCode.NOT_A_CHOICE, {"choices": _TYPES})


def _events() -> FieldRule[tuple[str, ...]]:
    texts = rules.texts(rules.text(_event_fault))

    def read(value: object, path: FieldPath, faults: Faults) -> tuple[str, ...] | None:
        before = len(faults)
        found = texts.read(value, path, faults)
        if found is None or len(faults) > before:
            return None
        if not found:
            faults.add(Fault(FaultCode.EMPTY, path=path))
            return None
        chosen = {text for _, text in found}
        return (ALL_EVENTS,) if ALL_EVENTS in chosen else tuple(name for name in _TYPES if name in chosen)

    schema: Schema = {"type": "array", "items": {"type": "string", "enum": list(_TYPES)}, "minItems": 1}
    return FieldRule(schema, read)


URL: Final = RequestField(
    name="url",
    label="URL",
    rule=rules.text(text_rules.callback_url_fault, longest=text_rules.MAX_URL, format="http-url"),
    meaning="Absolute http or https URL in printable ASCII, without user name. The rules of `callbackUrl` apply.",
    is_required=True,
)
EVENTS: Final = RequestField(
    name="events",
    label="Events",
    rule=_events(),
    meaning="The types of events that are sent; `*` for all types, including types that later versions add.",
    is_required=True,
)
FORMAT: Final = RequestField(
    name="format",
    label="Format",
    rule=rules.choice(WebhookFormat),
    meaning="`json` (default), or `discord`: messages for a Discord channel, at most one per minute, and never for "
    "`anticheat.detected`.",
)
ENABLED: Final = RequestField(
    name="enabled",
    rule=rules.boolean(),
    meaning="`false` disables the webhook: waiting deliveries are given up, and later events are not stored for it. "
    "`true` enables it for events from then on.",
)
CREATE: Final[tuple[AnyField, ...]] = (URL, EVENTS, FORMAT)
CHANGE: Final[tuple[AnyField, ...]] = (
    msgspec.structs.replace(URL, is_required=False),
    msgspec.structs.replace(EVENTS, is_required=False),
    ENABLED,
)


class NewWebhook(msgspec.Struct, frozen=True, kw_only=True):
    """A request to create a webhook."""

    url: str
    events: tuple[str, ...]
    format: WebhookFormat = WebhookFormat.JSON


class WebhookChange(msgspec.Struct, frozen=True, kw_only=True):
    """A request to change a webhook. Fields that are None stay unchanged."""

    url: str | None = None
    events: tuple[str, ...] | None = None
    enabled: bool | None = None


class DeliveriesQuery(msgspec.Struct, frozen=True, kw_only=True):
    """The filters and the page number of a list. `from_ms` (inclusive) and `before_ms` limit the creation time."""

    page: int = 1
    page_size: int = DEFAULT_PAGE_SIZE
    state: CallbackState | None = None
    from_ms: int | None = None
    before_ms: int | None = None


def read_new_webhook(body: object, *, allow_private: bool) -> NewWebhook:
    """Return the validated request; InvalidParamsError with all faults if the decoded body is invalid."""
    faults = Faults()
    fields = Fields.of(body, FieldPath(), CREATE, faults)
    if fields is None:
        raise faults.error()
    url, events, chosen = _url(fields, allow_private=allow_private), fields.read(EVENTS), fields.read(FORMAT)
    if faults or url is None or events is None:
        raise faults.error()
    new = NewWebhook(url=url, events=events, format=chosen or WebhookFormat.JSON)
    _check_format(new.events, new.format)
    return new


def read_webhook_change(body: object, *, format: WebhookFormat, allow_private: bool) -> WebhookChange:
    """Return the validated change of a webhook that has this format; raise InvalidParamsError with all faults."""
    faults = Faults()
    fields = Fields.of(body, FieldPath(), CHANGE, faults)
    if fields is None:
        raise faults.error()
    url = _url(fields, allow_private=allow_private) if fields.has(URL) else None
    events = fields.read(EVENTS) if fields.has(EVENTS) else None
    change = WebhookChange(url=url, events=events, enabled=fields.read(ENABLED))
    if faults:
        raise faults.error()
    _check_format(events or (ALL_EVENTS,), format)
    return change


def read_deliveries_query(pairs: Sequence[tuple[str, str]]) -> DeliveriesQuery:
    """Parse the query of a list of deliveries. A `since` after `until` is not a fault: the range is empty."""
    fields = QueryFields(pairs, _NAMES)
    page = fields.integer("page", at_least=1, at_most=MAX_PAGE)
    page_size = fields.integer("pageSize", at_least=1, at_most=MAX_PAGE_SIZE)
    state = fields.choice("state", CallbackState)
    since, until = fields.date("since"), fields.date("until")
    fields.check()
    return DeliveriesQuery(
        page=page or 1,
        page_size=page_size or DEFAULT_PAGE_SIZE,
        state=state,
        from_ms=None if since is None else since.from_ms,
        before_ms=None if until is None else until.before_ms,
    )


def read_webhook_id(text: str) -> str | None:
    """Return the text if it is a valid webhook id, else None."""
    return text if re.fullmatch(WEBHOOK_ID, text) else None


def read_delivery_id(text: str) -> str | None:
    """Return the text if it is a valid delivery id, else None."""
    return text if re.fullmatch(DELIVERY_ID, text) else None


def _url(fields: Fields, *, allow_private: bool) -> str | None:
    url = fields.read(URL)
    if url is not None and not allow_private and (host := private_host(url)) is not None:
        fields.fault(URL, FaultCode.PRIVATE_ADDRESS, host=printable(host))
    return url


def _check_format(events: Sequence[str], format: WebhookFormat) -> None:
    """Raise InvalidFieldsError if webhooks of this format never send any of the chosen events."""
    never = NEVER_IN.get(format, frozenset())
    if all(event in never for event in events):
        faults = Faults()
        choices = tuple(event for event in _TYPES if event not in never)
        faults.add(Fault(FaultCode.NOT_A_CHOICE, {"choices": choices}, FieldPath((EVENTS.name,))))
        raise faults.error()
