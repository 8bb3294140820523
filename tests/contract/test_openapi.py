"""The service follows its OpenAPI document: valid and invalid requests generated from it, alone and in sequence."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import run_state_machine_as_test

from cs2_protocol.game import Team
from matchpod.core.model import MAX_LISTED_PLAYERS, MatchType, SeriesFormat, StartSides
from matchpod.core.requests import text_rules
from matchpod.core.rulings import RuledWinner
from matchpod.core.views.result_shapes import DeathmatchResult
from matchpod.ports import Delivery
from matchpod.storage import outbox
from matchpod.web.endpoint import Endpoint, Tag
from matchpod.web.handlers.callback_routes import CALLBACKS
from matchpod.web.handlers.history_routes import HISTORY
from matchpod.web.handlers.webhook_routes import WEBHOOKS
from matchpod.web.http.responses import EVENT_STREAM
from matchpod.web.routes import CHECK_PATH, ENDPOINTS
from tests.effort import sized
from tests.stored_demos import upload_demo
from tests.unit.web import histories
from tests.unit.web.sites import NOW_MS, Site
from tests.vaults import tokens_of

if TYPE_CHECKING:  # every worker collects this module, and importing schemathesis takes half a second
    from schemathesis import APIOperation, Case, Response
    from schemathesis.specs.openapi.schemas import OpenApiSchema

    Operation = APIOperation[Any, Any, Any, Any]

pytestmark = pytest.mark.law

EXAMPLES = sized(2, 250)
"""Requests per operation: more would find little more in `make test`, which should take seconds. A round of `make soak`
makes more than 20,000 calls in all."""

WRONG_BODIES = sized(5, 500)
"""Requests per operation with a body, which can be invalid in many ways; in a third, only a header is invalid."""

WALKS = sized(8, 1_000)
"""Sequences of calls in random order: enough that every link is followed."""

GOLDEN = Path(__file__).resolve().parents[1] / "golden"
TEAMS = {"team1": {"players": ["76561198000000001"]}, "team2": {}}
TEXT = st.text(st.characters(exclude_categories=["C", "Z"]), min_size=1, max_size=40)
LABEL_VALUE = TEXT.filter(lambda text: text_rules.label_value_fault(text) is None)
FORMATS = {
    "label": st.builds("{}:{}".format, st.from_regex(text_rules.LABEL_NAME, fullmatch=True), LABEL_VALUE),
    "label-value": LABEL_VALUE,
    "region-code": st.sampled_from(["sandbox", "eu-west"]),
    "http-url": st.from_regex(r"https?://[a-z]{1,20}\.example(:[1-9][0-9]{0,3})?(/[a-z0-9]{0,9})?", fullmatch=True),
    "team-name": TEXT.filter(lambda text: text_rules.team_name_fault(text) is None),
    "reason": TEXT.filter(lambda text: text_rules.reason_fault(text) is None),
    "person": TEXT.filter(lambda text: text_rules.person_fault(text) is None),
    "server-password": TEXT.filter(lambda text: text_rules.password_fault(text) is None),
    "console-variables": st.sampled_from(
        ["", "// none", "mp_friendlyfire 1", 'mp_overtime_enable "1"\nmp_roundtime 2']
    ),
}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    created = Site(tmp_path_factory.mktemp("web") / "matchpod.sqlite")
    try:
        yield created
    finally:
        created.close()


@pytest.fixture(scope="module")
def document(site: Site) -> OpenApiSchema:
    import schemathesis

    for name, strategy in FORMATS.items():
        schemathesis.openapi.format(name, strategy)
    return schemathesis.openapi.from_asgi("/openapi.json", site.app)


@pytest.fixture(scope="module")
def internal(site: Site) -> OpenApiSchema:
    """The OpenAPI document for game servers and operators, as served."""
    import schemathesis

    return schemathesis.openapi.from_asgi("/openapi-internal.json", site.app)


QUICK = settings(max_examples=EXAMPLES, stateful_step_count=6, suppress_health_check=list(HealthCheck))


ENDLESS = "/api/v1/stream"
"""A stream that does not end by itself, so a request for it gets no complete response."""


def of_tag(tag: Tag) -> list[Endpoint]:
    return [endpoint for endpoint in ENDPOINTS if endpoint.tag is tag and endpoint.path != ENDLESS]


def send_each(
    document: OpenApiSchema,
    endpoint: Endpoint,
    check: Callable[[Case[Operation]], None],
    *,
    is_valid: bool = True,
    examples: int = EXAMPLES,
) -> None:
    """Generate requests to an endpoint that its description allows, or does not allow, and check each."""
    from schemathesis import GenerationMode

    mode = GenerationMode.POSITIVE if is_valid else GenerationMode.NEGATIVE
    cases: st.SearchStrategy[Case[Operation]] = document[endpoint.path][endpoint.method].as_strategy(
        generation_mode=mode
    )
    settings(QUICK, max_examples=examples)(given(cases)(check))()


def follows_unwritten_rules(case: Case[Operation]) -> bool:
    """True if the request follows the rules that a schema cannot express.

    A person is listed once, and at most 32 are listed. `limit` is set to `pageSize`, as both must be equal. Valid `sides`
    are changed to those of the series, and what needs listed players is left out without them.
    """
    if {"limit", "pageSize"} <= case.query.keys():
        case.query["limit"] = case.query["pageSize"]
    game_settings = case.body.get("gameSettings") if isinstance(case.body, dict) else None
    teams = game_settings.get("teams") if isinstance(game_settings, dict) else None
    found = [team for team in teams.values() if isinstance(team, dict)] if isinstance(teams, dict) else []
    listed = [player for team in found for player in listed_in(team, "players")]
    if not isinstance(game_settings, dict):
        return True
    game_settings.update(fitting_sides(game_settings, may_use_knife=bool(listed)))
    game_settings.pop("mapsWon", None)
    game_settings.pop("recordDemo", None)
    if not listed:
        game_settings.pop("autoStart", None)
        for team in found:
            team.pop("coaches", None)
    if not (len(found) == len(Team) and all(listed_in(team, "players") for team in found)):
        game_settings.pop("onNoShow", None)
    people = [*listed, *(coach for team in found for coach in listed_in(team, "coaches"))]
    people += [*listed_in(game_settings, "spectators"), *listed_in(game_settings, "players")]
    return len(people) == len(set(map(str, people))) <= MAX_LISTED_PLAYERS


def listed_in(owner: Mapping[str, object], name: str) -> list[object]:
    people = owner.get(name)
    return people if isinstance(people, list) else []


def fitting_sides(game_settings: Mapping[str, object], *, may_use_knife: bool) -> dict[str, Any]:
    """Return one of the sides for each map of the series, without a knife round if no player is listed."""
    sides, series_format = game_settings.get("sides"), str(game_settings.get("seriesFormat") or "bo1")
    is_valid = isinstance(sides, list) and sides and all(side in tuple(StartSides) for side in sides)
    if not isinstance(sides, list) or not is_valid or series_format not in tuple(SeriesFormat):
        return {}
    usable = [str(side) if may_use_knife or side != StartSides.KNIFE else "team1_t" for side in sides]
    return {"sides": (usable * 5)[: SeriesFormat(series_format).length]}


@pytest.mark.parametrize("endpoint", of_tag(Tag.API), ids=lambda endpoint: endpoint.name)
def test_valid_requests_are_answered_as_documented(document: OpenApiSchema, site: Site, endpoint: Endpoint) -> None:
    def check(case: Case[Operation]) -> None:
        assume(follows_unwritten_rules(case))
        case.call_and_validate(headers={"Authorization": f"Bearer {site.key}"})

    send_each(document, endpoint, check)


@pytest.mark.parametrize(
    "endpoint", [e for e in of_tag(Tag.API) if e.access is not None], ids=lambda endpoint: endpoint.name
)
def test_invalid_requests_are_rejected_as_documented(document: OpenApiSchema, site: Site, endpoint: Endpoint) -> None:
    def check(case: Case[Operation]) -> None:
        case.call_and_validate(headers={"Authorization": f"Bearer {site.key}"})

    send_each(document, endpoint, check, is_valid=False, examples=WRONG_BODIES if endpoint.body else EXAMPLES)


@pytest.mark.parametrize("endpoint", [*of_tag(Tag.INGEST), *of_tag(Tag.OPERATIONS)], ids=lambda endpoint: endpoint.name)
def test_requests_of_servers_and_operators_are_answered_as_documented(
    internal: OpenApiSchema, site: Site, endpoint: Endpoint
) -> None:
    row = site.row(site.new_server(gameSettings={"matchType": "competitive", "map": "de_dust2", "teams": TEAMS}))
    token = tokens_of(row).log if "logs" in endpoint.path else tokens_of(row).report

    def check(case: Case[Operation]) -> None:
        if "token" in case.path_parameters:
            case.path_parameters["token"] = token
        case.call_and_validate(headers={"X-Matchpod-Token": token} if endpoint.tag is Tag.INGEST else {})

    send_each(internal, endpoint, check)


RESULTS = {
    "series": (GOLDEN / "example-result.json").read_bytes(),
    "deathmatch": msgspec.json.encode(
        DeathmatchResult(
            game_mode=MatchType.DEATHMATCH,
            map="de_dust2",
            played_map_name="de_dust2",
            duration=600,
            complete=True,
            winner_steam_id=None,
            winner_team=None,
            players=(),
            anti_cheat=(),
        )
    ),
}


@pytest.mark.parametrize("result", RESULTS.values(), ids=RESULTS)
def test_running_and_finished_matches_are_as_documented(document: OpenApiSchema, site: Site, result: bytes) -> None:
    server_id = site.new_server(externalMatchId="finished")
    site.start(server_id)
    server = site.get(f"/api/v1/servers/{server_id}")
    assert server.json()["match"] is not None
    document["/api/v1/servers/{id}"]["GET"].validate_response(server)
    site.end(server_id, result=result)
    match = site.get("/api/v1/matches/finished")
    assert match.json()["result"] is not None
    document["/api/v1/matches/{externalMatchId}"]["GET"].validate_response(match)


def test_rulings_are_as_documented(document: OpenApiSchema, site: Site) -> None:
    server_id = site.new_server(externalMatchId="ruled")
    path = f"/api/v1/servers/{server_id}/ruling"
    for status in (409, 201):
        made = site.request("POST", path, key=site.key, json={"winner": "team2", "by": "Eva"})
        assert made.status_code == status
        document["/api/v1/servers/{id}/ruling"]["POST"].validate_response(made)
        if status == 409:
            site.cancel(server_id)
    for found in (f"servers/{server_id}", "matches/ruled"):
        template = "/api/v1/servers/{id}" if "servers" in found else "/api/v1/matches/{externalMatchId}"
        shown = site.get(f"/api/v1/{found}")
        assert shown.json()["ruling"]["winner"] == "team2"
        document[template]["GET"].validate_response(shown)
    for status in (200, 404):
        withdrawn = site.request("DELETE", path, key=site.key)
        assert withdrawn.status_code == status
        document["/api/v1/servers/{id}/ruling"]["DELETE"].validate_response(withdrawn)


def test_callbacks_are_as_documented(document: OpenApiSchema, site: Site) -> None:
    for name, result in RESULTS.items():
        server_id = site.new_server(callbackUrl="https://caller.example/", externalMatchId=name)
        site.start(server_id)
        site.end(server_id, result=result)
        callback_id = f"msg_{server_id}"
        for number, status in ((1, 503), (2, None)):
            delivery = Delivery(status=status, duration_ms=5, error=None if status else "timeout")
            headers = {"webhook-id": callback_id} if status else None
            record = outbox.record_attempt(
                callback_id, delivery, number=number, at_ms=NOW_MS, next_at_ms=None, headers=headers
            )
            site.run(site.db.write(record))
        path = "/api/v1/callbacks/{id}"
        detail = site.get(f"/api/v1/callbacks/{callback_id}")
        assert len(detail.json()["attempts"]) == 2
        document[path]["GET"].validate_response(detail)
        for status in (200, 409):
            response = site.request("POST", f"/api/v1/callbacks/{callback_id}/redeliver", key=site.key)
            assert response.status_code == status
            document[f"{path}/redeliver"]["POST"].validate_response(response)
        page = site.get("/api/v1/callbacks")
        assert page.json()["items"]
        document["/api/v1/callbacks"]["GET"].validate_response(page)


FILTERS = ("page", "status", "state", "serverId", "map", "label", "dateFrom", "dateTo", "since", "until")


def call_in_any_order(document: OpenApiSchema, site: Site, names: list[str]) -> Counter[tuple[str, int]]:
    """Follow the links of the document from response to response; count the operations and their statuses.

    Valid requests for a list are for its first page without filters: random filters would leave no links to follow.
    """
    from schemathesis import GenerationMode

    reached: Counter[tuple[str, int]] = Counter()
    base = document.include(operation_id=names).as_state_machine()

    class Calls(base):  # type: ignore[misc, valid-type]
        def get_call_kwargs(self, case: Case[Operation]) -> dict[str, object]:
            return {"headers": {"Authorization": f"Bearer {site.key}"}}

        def before_call(self, case: Case[Operation]) -> None:
            if case.meta is not None and case.meta.generation.mode is GenerationMode.POSITIVE:
                assume(follows_unwritten_rules(case))
                for name in FILTERS:
                    case.query.pop(name, None)
                case.headers.pop("Range", None)  # a part may begin after the end of a file
                if isinstance(case.body, dict) and "winner" in case.body and "type" not in case.body:
                    case.body["winner"] = RuledWinner.NONE.value  # of a ruling: a deathmatch has no teams

        def after_call(self, response: Response, case: Case[Operation]) -> None:
            reached[case.operation.definition.raw["operationId"], response.status_code] += 1

    run_state_machine_as_test(Calls, settings=settings(QUICK, max_examples=WALKS))
    return reached


def test_matches_are_created_read_and_canceled_in_any_order(document: OpenApiSchema, site: Site) -> None:
    names = [
        endpoint.name
        for endpoint in of_tag(Tag.API)
        if endpoint not in (*HISTORY, *CALLBACKS, *WEBHOOKS) and endpoint.path != CHECK_PATH
    ]
    reached = call_in_any_order(document, site, names)
    # The links lead to existing servers; otherwise this would only repeat the tests above.
    for expected in (("createMatch", 201), ("getServer", 200), ("cancelMatch", 200)):
        assert reached[expected], reached
    # Few of the random matches have an external id, so the walks do not always reach this one.
    created = document.raw_schema["paths"]["/api/v1/matches"]["post"]["responses"]["201"]
    assert "getMatchByExternalId" in {link.get("operationId") for link in created["links"].values()}


def test_callbacks_are_read_and_sent_again_in_any_order(document: OpenApiSchema, site: Site) -> None:
    site.cancel(site.new_server(callbackUrl="https://caller.example/"))
    reached = call_in_any_order(document, site, [endpoint.name for endpoint in CALLBACKS])
    assert reached["getCallback", 200], reached


# --- the history --------------------------------------------------------------------------------------------------

POLLED = [endpoint for endpoint in HISTORY if endpoint.content_type != EVENT_STREAM]
STREAMS = [e for e in HISTORY if e.content_type == EVENT_STREAM and e.path != ENDLESS]


@pytest.fixture(scope="module")
def played(site: Site) -> dict[str, str]:
    """Play a series to its end; return the path parameters that identify it."""
    server_id = histories.new_series(site)
    histories.finish(site, server_id)
    (series,) = site.get(f"/api/v1/cs2/servers/{server_id}/series").json()["items"]
    map_id = histories.map_ids(site, server_id)[0]
    site.run(upload_demo(site.sqlite, site.demo_storage, server_id, b"0123456789"))
    return {"id": server_id, "serverId": server_id, "seriesId": series["seriesId"], "mapId": map_id}


@pytest.mark.parametrize("endpoint", POLLED, ids=lambda endpoint: endpoint.name)
def test_played_series_is_as_documented(
    document: OpenApiSchema, site: Site, played: dict[str, str], endpoint: Endpoint
) -> None:
    def check(case: Case[Operation]) -> None:
        assume(follows_unwritten_rules(case))
        case.path_parameters.update({name: played[name] for name in case.path_parameters})
        response = case.call_and_validate(headers={"Authorization": f"Bearer {site.key}"})
        if endpoint.is_file:  # the number of a file, and a part of it, may be any
            assert response.status_code in (200, 206, 404, 416)
        else:
            assert response.status_code == (304 if case.headers.get("If-None-Match", "").strip() == "*" else 200)

    send_each(document, endpoint, check)
    whole = site.get(endpoint.path.format(**played))
    if endpoint.is_file:
        assert whole.content == b"0123456789"
        return
    assert whole.json().get("items") != []
    document[endpoint.path][endpoint.method].validate_response(whole)


@pytest.mark.parametrize("endpoint", STREAMS, ids=lambda endpoint: endpoint.name)
def test_streams_of_a_played_series_are_as_documented(
    document: OpenApiSchema, site: Site, played: dict[str, str], endpoint: Endpoint
) -> None:
    path = endpoint.path.format(**played)
    stream, nothing_left = site.get(path), site.get(f"{path}?lastEventId=7")
    assert (stream.status_code, nothing_left.status_code) == (200, 204)
    assert stream.text.count("event: ") == 7
    for response in (stream, nothing_left):
        document[endpoint.path][endpoint.method].validate_response(response)


def test_organization_stream_documents_every_event_and_no_end(document: OpenApiSchema) -> None:
    operation = document.raw_schema["paths"][ENDLESS]["get"]
    schemas = document.raw_schema["components"]["schemas"]
    event = operation["responses"]["200"]["content"][EVENT_STREAM]["schema"]["$ref"].rpartition("/")[2]
    items = schemas[event]["properties"]["data"]["contentSchema"]["$ref"].rpartition("/")[2]
    assert {*schemas[items]["discriminator"]["mapping"]} == {
        "action", "anti_cheat", "attention_raised", "demo_available", "gap", "map_ended", "map_live", "match_created",
        "match_ended", "match_paused", "match_resumed", "position", "ruling", "score_changed", "server_running",
    }  # fmt: skip
    assert "204" not in operation["responses"]


def test_history_is_read_in_any_order(document: OpenApiSchema, site: Site, played: dict[str, str]) -> None:
    reached = call_in_any_order(document, site, [endpoint.name for endpoint in POLLED])
    for name in ("getSeries", "getMap"):
        assert reached[name, 200], (reached, played)
