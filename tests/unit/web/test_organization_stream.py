"""The stream of an organization over HTTP: permissions, positions, and what callers receive."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest

from matchpod.core.effects import CancelReason
from matchpod.core.views.organization_event_shapes import MatchCreatedEvent, MatchEndedEvent, OrganizationEvent
from matchpod.service.identity.principals import Scope as AccessScope
from matchpod.service.streams.readers import PollPace
from matchpod.storage import organization_events as stored_events
from tests.unit.web import sites
from tests.unit.web.sites import Site, check_error, unavailable
from tests.unit.web.test_event_streams import ids, open_stream, rejected_parameters

site = sites.site

PATH = "/api/v1/stream"
POSITION = b'id: %d\nevent: position\ndata: {"type":"position"}\n\n'


def events(body: bytes) -> list[OrganizationEvent]:
    lines = [part.split(b"\ndata: ")[1] for part in body.split(b"\n\n") if b"\ndata: " in part]
    return [msgspec.json.decode(line, type=OrganizationEvent) for line in lines]


def test_stream_begins_with_its_position_and_pushes_what_happens(site: Site) -> None:
    site.new_server(externalMatchId="before")

    async def scenario() -> None:
        async with open_stream(site, PATH) as (client, _):
            assert await client.body() == POSITION % 1
            await create(site, "cup 1")
            (created,) = events(await client.body())
            assert isinstance(created, MatchCreatedEvent)
            assert (created.external_match_id, created.region) == ("cup 1", "sandbox")
            await cancel(site, created.server_id)
            (ended,) = events(await client.body())
            assert isinstance(ended, MatchEndedEvent)
            assert (ended.server_id, ended.external_match_id) == (created.server_id, "cup 1")
            assert (ended.outcome, ended.reason) == ("match_canceled", CancelReason.CANCELED_BY_USER)

    site.run(scenario())


async def create(site: Site, external_id: str) -> None:
    principal = await site.services.access.authenticate(f"Bearer {site.key}")
    body = json.dumps({**sites.BODY, "externalMatchId": external_id}).encode()
    await site.services.matches.create(principal, body, None)


async def cancel(site: Site, server_id: str) -> None:
    principal = await site.services.access.authenticate(f"Bearer {site.key}")
    await site.services.matches.cancel(principal, server_id)


def test_repeated_creation_is_one_event(site: Site) -> None:
    for _ in range(3):
        assert site.create(None, "same-key").status_code == 201
    site.create(None, "same-key", externalMatchId="other")
    assert site.run(stored_events.newest(site.db, site.row(site.new_server()).org_id)) == 2


@pytest.mark.parametrize("text", ["-1", "1.5", "abc", "1" + "0" * 16, "1.2"])
def test_position_must_be_at_most_16_digits(site: Site, text: str) -> None:
    assert rejected_parameters(site, f"{PATH}?lastEventId={text}") == ["lastEventId"]
    assert rejected_parameters(site, PATH, text) == ["Last-Event-ID"]
    assert rejected_parameters(site, f"{PATH}?after=1") == ["after"]


def test_errors_are_reported_before_the_stream_starts(site: Site) -> None:
    check_error(site.request("GET", PATH), 401, "UNAUTHORIZED")
    check_error(site.get(PATH, site.new_key(scopes=[AccessScope.SERVERS_WRITE])), 403, "FORBIDDEN")
    assert site.request("POST", PATH, key=site.key).status_code == 405
    site.db.failure = unavailable()
    check_error(site.get(PATH), 503, "SERVICE_UNAVAILABLE")
    site.db.failure = None
    assert not site.services.streams
    site.services.streams.close()
    assert int(site.get(PATH).headers["retry-after"]) >= 1


def test_stream_survives_an_outage_of_the_database(tmp_path: Path) -> None:
    async def scenario(site: Site) -> None:
        async with open_stream(site, PATH) as (client, _):
            assert await client.body() == POSITION % 0
            await create(site, "cup 1")
            site.db.failure = unavailable()
            await site.db.failed.wait()
            site.db.failure = None
            assert ids(await client.body()) == ["1"]

    with sites.opened(tmp_path, poll_pace=PollPace(poll_s=0.01, check_polls=1, gather_s=0.01)) as site:
        site.run(scenario(site))
