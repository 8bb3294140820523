"""What may be said about a webhook."""

from __future__ import annotations

import pytest

from matchpod.core.errors import InvalidParamsError
from matchpod.core.requests.callback_query import CallbackState
from matchpod.core.requests.webhook_request import (
    DeliveriesQuery,
    NewWebhook,
    WebhookChange,
    read_deliveries_query,
    read_new_webhook,
    read_webhook_change,
    read_webhook_id,
)
from matchpod.core.webhook_events import WebhookFormat

URL = "https://events.example/in"


def faults(body: object, *, allow_private: bool = False) -> list[str]:
    with pytest.raises(InvalidParamsError) as raised:
        read_new_webhook(body, allow_private=allow_private)
    return [f"{fault.path} {fault.message}" for fault in raised.value.faults]


def test_a_webhook_has_a_url_and_the_events_that_it_sends() -> None:
    body = {"url": URL, "events": ["match.ended", "map.ended", "match.ended"]}
    new = read_new_webhook(body, allow_private=False)
    assert new == NewWebhook(url=URL, events=("map.ended", "match.ended"), format=WebhookFormat.JSON)


def test_all_events_are_an_asterisk_alone() -> None:
    assert read_new_webhook({"url": URL, "events": ["map.ended", "*"]}, allow_private=False).events == ("*",)


def test_faults_name_the_field_and_all_types() -> None:
    assert faults({}) == ["url is required", "events is required"]
    assert faults({"url": URL, "events": []}) == ["events must not be empty"]
    (fault,) = faults({"url": URL, "events": ["match.over"]})
    assert fault.startswith("events[0] must be one of *, server.running, match.live")
    assert faults({"url": URL, "events": ["*"], "format": "slack"}) == ["format must be one of json, discord"]
    assert faults({"url": "ftp://x", "events": ["*"]}) == ["url must be an absolute http or https URL"]
    (fault,) = faults({"url": URL, "events": ["*"], "secret": "x"})
    assert fault.startswith("secret is not a known field")


def test_a_private_address_is_rejected_unless_the_service_allows_it() -> None:
    body = {"url": "http://127.0.0.1/in", "events": ["*"]}
    (fault,) = faults(body)
    assert fault.startswith("url must not be at 127.0.0.1")
    assert read_new_webhook(body, allow_private=True).url == body["url"]


def test_a_channel_cannot_have_detections_only() -> None:
    (fault,) = faults({"url": URL, "events": ["anticheat.detected"], "format": "discord"})
    assert fault.startswith("events must be one of")
    assert "anticheat" not in fault


def test_a_change_has_only_what_changes() -> None:
    change = read_webhook_change({"enabled": False}, format=WebhookFormat.JSON, allow_private=False)
    assert change == WebhookChange(enabled=False)
    with pytest.raises(InvalidParamsError):
        read_webhook_change({"format": "json"}, format=WebhookFormat.JSON, allow_private=False)
    with pytest.raises(InvalidParamsError):
        read_webhook_change({"url": "http://localhost/"}, format=WebhookFormat.JSON, allow_private=False)
    with pytest.raises(InvalidParamsError):
        read_webhook_change({"events": ["anticheat.detected"]}, format=WebhookFormat.DISCORD, allow_private=False)


def test_deliveries_are_filtered_by_state_and_time() -> None:
    query = read_deliveries_query([("state", "given_up"), ("since", "1970-01-02"), ("pageSize", "5")])
    assert query == DeliveriesQuery(page_size=5, state=CallbackState.GIVEN_UP, from_ms=86_400_000)
    with pytest.raises(InvalidParamsError):
        read_deliveries_query([("serverId", "srv_1")])


def test_ids_have_their_form() -> None:
    known = "wh_01hf7yat000000000000000000"
    assert read_webhook_id(known) == known
    assert read_webhook_id("wh_\x00") is None
    assert read_webhook_id("srv_01hf7yat000000000000000000") is None
