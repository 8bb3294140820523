"""What callers get when their organization reaches one of its limits."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from matchpod.service.access.quotas import Quotas
from tests.unit.web import sites
from tests.unit.web.sites import Site, check_error


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    """A site whose organizations may have three live matches and one stream, and create five matches per minute."""
    quotas = Quotas(max_live_matches=3, max_creations_per_minute=5)
    with sites.opened(tmp_path, quotas=quotas, max_streams=1) as created:
        yield created


def test_organization_with_too_many_live_matches_gets_429(site: Site) -> None:
    first, *_ = [site.new_server() for _ in range(3)]
    response = site.create()
    assert check_error(response, 429, "RATE_LIMIT_EXCEEDED")["message"] == (
        "This organization has 3 matches that have not ended, its limit. Retry when one has ended, or cancel one."
    )
    assert response.headers["retry-after"] == "30"
    assert site.create(site.other_key).status_code == 201
    site.cancel(first)
    assert site.create().status_code == 201


def test_organization_that_creates_too_many_matches_in_a_minute_gets_429(site: Site) -> None:
    for _ in range(5):
        site.cancel(site.new_server())
    response = site.create()
    assert check_error(response, 429, "RATE_LIMIT_EXCEEDED")["message"] == (
        "The limit of this organization is 5 new matches per minute. Retry in 12 s."
    )
    assert response.headers["retry-after"] == "12"
    assert site.create(site.other_key).status_code == 201
    site.clock.at_ms += 12_000
    assert site.create().status_code == 201


def test_rejected_bodies_do_not_count_as_creations(site: Site) -> None:
    for _ in range(10):
        check_error(site.create(region="mars"), 400, "INVALID_PARAMS")
    assert site.create().status_code == 201


def test_repeated_creation_is_answered_even_if_the_organization_is_at_its_limits(site: Site) -> None:
    first = site.create(None, "k-1").json()
    for _ in range(2):
        site.cancel(site.new_server())
    for _ in range(2):
        site.new_server()
    check_error(site.create(), 429, "RATE_LIMIT_EXCEEDED")
    again = site.create(None, "k-1")
    assert (again.status_code, again.json()) == (201, first)
    check_error(site.create(None, "k-1", externalMatchId="other"), 409, "IDEMPOTENCY_CONFLICT")
