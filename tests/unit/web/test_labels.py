"""Labels of matches, from the request to everything that shows or filters them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from urllib.parse import quote

import msgspec
import pytest

from matchpod.core.labels import MAX_LABELS
from matchpod.core.requests.text_rules import MAX_LABEL_NAME, MAX_LABEL_VALUE
from matchpod.storage import organization_events, outbox
from tests.unit.web import histories, sites
from tests.unit.web.sites import Site, check_error

site = sites.site
LISTS = ("/api/v1/servers", "/api/v1/cs2/series", "/api/v1/cs2/matches")
LABELS = {"event": "finals", "round": "grand final: map 2", "A.b-c_9": "Ünïcode 🎮"}


def settings(labels: object, match_type: str = "competitive") -> dict[str, object]:
    return {"matchType": match_type, "map": "de_dust2", "labels": labels}


def labeled(site: Site, labels: dict[str, str], **fields: object) -> str:
    site.clock.at_ms += 1
    return site.new_server(gameSettings=settings(labels), **fields)


def ids(site: Site, path: str, *labels: str, more: str = "") -> list[str]:
    """Return the servers in a list that is filtered by labels."""
    query = "&".join(f"label={quote(label, safe='')}" for label in labels)
    page = site.get(f"{path}?{query}{more}").json()
    assert page["total"] == len(page["items"]), page
    return [item["serverId"] for item in page["items"]]


def shown_with(site: Site, server_id: str, external_id: str) -> Iterator[dict[str, object]]:
    """Yield everything that shows a match with one map."""
    yield site.get(f"/api/v1/servers/{server_id}").json()
    yield site.get(f"/api/v1/matches/{external_id}").json()
    for path in LISTS:
        yield next(one for one in site.get(path).json()["items"] if one["serverId"] == server_id)
    series = site.get(f"/api/v1/cs2/servers/{server_id}/series").json()["items"][0]
    yield series
    yield site.get(f"/api/v1/cs2/series/{series['seriesId']}").json()
    yield site.get(f"/api/v1/cs2/matches/{series['maps'][0]['id']}").json()
    org_id = site.row(server_id).org_id
    for _, line in site.run(organization_events.read_after(site.db, org_id, 0, limit=100)):
        event = json.loads(line)
        if event["serverId"] == server_id:
            yield event
    callback = site.run(outbox.callback_of(site.db, server_id))
    assert callback is not None
    yield json.loads(callback.body)


@pytest.mark.parametrize(("region", "simulated"), [("sandbox", True), ("eu-west", None)])
@pytest.mark.parametrize("labels", [LABELS, {}, None])
def test_labels_and_simulation_are_shown_wherever_the_match_is_and_left_out_otherwise(
    site: Site, labels: dict[str, str] | None, region: str, *, simulated: bool | None
) -> None:
    url = "https://caller.example/done"
    body = {"externalMatchId": "cup", "callbackUrl": url, "region": region}
    server_id = site.create(gameSettings=settings(labels), **body).json()["serverId"]
    site.end(server_id, result=b"{}")
    shown = list(shown_with(site, server_id, "cup"))
    assert len(shown) == 11
    for one in shown:
        assert one.get("labels") == (labels or None), one
        assert ("labels" in one) is bool(labels)
        assert one.get("simulated") is simulated
        assert ("simulated" in one) is (simulated is not None)


def test_match_without_labels_stores_none(site: Site) -> None:
    server_id = site.new_server(region="eu-west")
    assert site.row(server_id).marks is None
    assert site.run(site.db.read("SELECT COUNT(*) FROM server_labels")) == [(0,)]


def test_lists_are_filtered_by_all_given_labels(site: Site) -> None:
    first = labeled(site, {"event": "finals", "table": "1"})
    second = labeled(site, {"event": "finals", "table": "2"}, externalMatchId="cup")
    other = labeled(site, {"event": "finals:2"})
    site.new_server()
    site.create(site.other_key, gameSettings=settings({"event": "finals"}))
    for path in LISTS:
        assert ids(site, path, "event:finals") == [second, first]
        assert ids(site, path, "event:finals", "table:1") == [first]
        assert ids(site, path, "table:1", "event:finals") == [first]
        assert ids(site, path, "event:finals:2") == [other]
        assert ids(site, path, "event:finals", "event:finals") == [second, first]
        assert ids(site, path, "event:finals", "event:finals:2") == ids(site, path, "event:semi") == []
    assert ids(site, LISTS[0], "event:finals", more="&externalMatchId=cup") == [second]
    assert ids(site, LISTS[0], "event:finals", "table:1", more="&externalMatchId=cup") == []
    for path in LISTS[1:]:
        assert ids(site, path, "event:finals", more=f"&serverId={first}") == [first]
        assert ids(site, path, "table:2", more=f"&serverId={first}") == []


@pytest.mark.parametrize(
    ("labels", "path", "message"),
    [
        ({f"n{at}": "x" for at in range(MAX_LABELS + 1)}, "gameSettings.labels", "must have at most 8 entries, not 9"),
        ({"a:b": "x"}, "gameSettings.labels.a:b", "must have a name of 1 to 32 of A-Z a-z 0-9 _ . -"),
        ({"n": "x" * (MAX_LABEL_VALUE + 1)}, "gameSettings.labels.n", "must be 1 to 64 characters"),
        ({"n": "a\u202eb"}, "gameSettings.labels.n", "(found U+202E)"),
    ],
)
def test_invalid_labels_are_rejected(site: Site, labels: object, path: str, message: str) -> None:
    body = check_error(site.create(gameSettings=settings(labels)), 400, "INVALID_PARAMS")
    ((found),) = msgspec.convert(body["details"], list[dict[str, str]])
    assert found["path"] == path
    assert message in found["message"]


def test_longest_labels_are_accepted(site: Site) -> None:
    labels = {f"{at}" + "n" * (MAX_LABEL_NAME - 1): "🎮" * MAX_LABEL_VALUE for at in range(MAX_LABELS)}
    server_id = site.new_server(gameSettings=settings(labels))
    assert ids(site, LISTS[0], *(f"{name}:{value}" for name, value in labels.items())) == [server_id]


@pytest.mark.parametrize("path", LISTS)
@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("label=a:b&label=", "must not be empty"),
        ("label=finals", "as in event:finals"),
        ("&".join(f"label=n{at}:x" for at in range(MAX_LABELS + 1)), "must be given at most 8 times, not 9"),
        ("labels=event:finals", "did you mean label?"),
    ],
)
def test_invalid_filters_are_rejected(site: Site, path: str, query: str, message: str) -> None:
    body = check_error(site.get(f"{path}?{query}"), 400, "INVALID_PARAMS")
    assert any(message in one["message"] for one in msgspec.convert(body["details"], list[dict[str, str]])), body


def test_series_of_one_server_are_not_filtered_by_label(site: Site) -> None:
    path = f"/api/v1/cs2/servers/{histories.new_series(site)}/series"
    check_error(site.get(f"{path}?label=event:finals"), 400, "INVALID_PARAMS")
