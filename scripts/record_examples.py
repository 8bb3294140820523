"""Record the examples for the API description: play simulated matches on a real service, and store its answers.

Run `python -m scripts.record_examples` after a change to the API's answers, and review the difference. It takes one or
two minutes. Long lists are shortened; secrets and local addresses are replaced. The errors 500, 503 and RULING_TOO_LATE
are built with the code of the service; all other errors are provoked.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from matchpod.core.errors import InvalidParamsError, NotFoundError, RulingTooLateError, UnavailableError
from matchpod.web.application import internal_error
from matchpod.web.endpoint import Endpoint, Tag
from matchpod.web.errors import error_response
from matchpod.web.openapi.examples import without_repeats
from matchpod.web.routes import ENDPOINTS
from scripts.recorded_service import RecordedService, Response, wait_until

FILE = Path(__file__).resolve().parents[1] / "src" / "matchpod" / "web" / "openapi" / "assets" / "examples.json"

MAX_ITEMS = 2
"""Maximum number of objects kept of a list. Two objects show that it is a list."""

RATE_LIMIT = 300
"""Rate limit of the service in requests per minute and key. It is only exceeded to provoke the error."""

PLAYERS = [str(76561198000000001 + number) for number in range(4)]
TEAMS = {
    "team1": {"name": "Reds", "players": PLAYERS[:2]},
    "team2": {"name": "Blues", "players": PLAYERS[2:]},
}
UNKNOWN = {
    "id": "srv_00000000000000000000000000",
    "serverId": "srv_00000000000000000000000000",
    "seriesId": "ser_00000000000000000000000000",
    "webhookId": "wh_00000000000000000000000000",
    "actionId": "action_00000000000000000000000000",
    "mapId": "00000000-0000-4000-8000-000000000000",
    "externalMatchId": "unknown",
    "code": "unknown",
    "file": "unknown.txt",
}
WRONG_QUERIES = {
    "listServers": "?pageSize=0",
    "listCallbacks": "?state=lost",
    "listDeliveries": "?state=lost",
    "listAudit": "?pageSize=0",
    "listSeries": "?status=over",
    "listServerSeries": "?page=0",
    "listMaps": "?pageSize=1000",
    "getMapEvents": "?afterSeq=-1",
    "getMapDemoFile": "?number=0",
    "getMapLeaderboard": "?sortBy=aces",
    "streamMapEvents": "?lastEventId=last",
    "streamServerEvents": "?lastEventId=last",
    "streamOrganizationEvents": "?lastEventId=last",
}
DETECTION = (
    "```\nServer IP: 127.0.0.1:27015\nPlayer: undertow\nSteamID: 76561198000000001\nCheat Type: Aimbot\n"
    "Details: snapped 87 degrees in one tick\n```"
)


class Recorder:
    """Collects examples by operation, with the values of path parameters for which they were recorded."""

    def __init__(self, service: RecordedService) -> None:
        self.service = service
        self.operations: dict[str, dict[str, Any]] = {}
        self.webhooks: dict[str, dict[str, Any]] = {}
        self.errors: dict[str, Any] = {}
        self.endpoints = {endpoint.name: endpoint for endpoint in ENDPOINTS}

    def call(self, name: str, label: str, body: object = None, *, query: str = "", **parameters: str) -> Response:
        """Call an operation, and record its body, its parameters and its answer under this label."""
        endpoint = self.endpoints[name]
        response = self.request(endpoint, parameters, body, query=query)
        self.add(name, label, response)
        if response.status < 400:
            own = self.operations[name]
            own.setdefault("parameters", {}).update(
                {key: value for key, value in parameters.items() if key not in own.get("parameters", {})}
            )
            if body is not None:
                own.setdefault("request", {})[label] = body
        return response

    def request(
        self, endpoint: Endpoint, parameters: Mapping[str, str], body: object = None, *, query: str = ""
    ) -> Response:
        """Call an operation without recording the answer."""
        headers = {key: value for key, value in parameters.items() if f"{{{key}}}" not in endpoint.path}
        path = endpoint.path.format(**parameters) + query
        return self.service.call(endpoint.method, path, body, headers=headers)

    def add(self, name: str, label: str, response: Response) -> None:
        """Record an answer of an operation under a label."""
        value = shortened(response.json) if response.json is not None else response.text
        own = self.operations.setdefault(name, {})
        own.setdefault("responses", {}).setdefault(str(response.status), {})[label] = value

    def add_error(self, response: Response) -> None:
        """Record an error as the example of its code."""
        self.errors[response.json["error"]] = response.json

    def as_json(self) -> str:
        operations = {
            name: {part: value for part, value in own.items() if value} for name, own in self.operations.items()
        }
        parts = {"operations": operations, "webhooks": self.webhooks, "errors": self.errors}
        return json.dumps(parts, ensure_ascii=False)


def shortened(value: Any) -> Any:
    """Return a copy in which lists of objects are shortened. Of a timeline, the first item of each type is kept."""
    if isinstance(value, dict):
        return {key: shortened(item) for key, item in value.items()}
    if not isinstance(value, list) or not value or not isinstance(value[0], dict):
        return value
    if "seq" in value[0]:
        of_types: dict[str, Any] = {}
        for item in value:
            of_types.setdefault(item["type"], item)
        return list(of_types.values())
    return [shortened(item) for item in value[:MAX_ITEMS]]


# --- the matches ----------------------------------------------------------------------------------------------------


def record(service: RecordedService) -> Recorder:
    """Play the matches and call every operation."""
    recorder = Recorder(service)
    webhook_id = create_webhook(recorder)
    series, deathmatch = create_matches(recorder)
    in_progress = record_live_match(recorder, series)
    for server_id in (series, deathmatch):
        wait_until(lambda ended=server_id: has_ended(service, ended), "the match has ended")  # type: ignore[misc]
    wait_until(lambda: len(service.proxy.callbacks) >= 4 or None, "all callbacks have arrived")
    record_results(recorder, in_progress)
    record_ruling(recorder)
    record_check(recorder)
    record_history(recorder, series, deathmatch)
    record_streams(recorder, series)
    record_callbacks(recorder)
    record_webhook(recorder, webhook_id)
    recorder.call("listAudit", "acts")
    record_errors(recorder, series)
    record_internal(recorder)
    return recorder


def has_ended(service: RecordedService, server_id: str) -> bool:
    """True if the match of the server has ended."""
    return bool(service.call("GET", f"/api/v1/servers/{server_id}").json["endedAt"])


def create_matches(recorder: Recorder) -> tuple[str, str]:
    """Create matches that end in different ways. Return the servers of the two matches that are played."""
    common = {
        "region": "sandbox",
        "gameType": "cs2",
        "callbackUrl": f"{recorder.service.proxy.url}/callback",
        "callbackAuthToken": "Bearer my-token",
    }

    def create(label: str, external_id: str, settings: dict[str, Any]) -> str:
        body = {**common, "externalMatchId": external_id, "gameSettings": settings}
        server_id: str = recorder.call("createMatch", label, body).json["serverId"]
        return server_id

    recorder.call("listRegions", "regions")
    labels = {"event": "autumn cup", "round": "quarter final"}
    series = {
        "matchType": "competitive",
        "map": "de_mirage",
        "maxRounds": 6,
        "freezeTime": 5,
        "teams": TEAMS,
        "labels": labels,
    }
    played = create("competitive", "cup-17", series)
    flat = {"matchType": "deathmatch", "map": "de_dust2", "dmSubMode": "ffa", "dmRoundMinutes": 2, "players": PLAYERS}
    deathmatch = create("deathmatch", "warmup-3", flat)
    canceled = create("to-be-canceled", "cup-18", series)
    create("simulated", "cup-19", {**series, "customCvars": "sim_scenario incomplete_roster"})
    recorder.call("cancelMatch", "canceled", id=canceled)
    for labels in (
        recorder.operations["createMatch"]["responses"]["201"],
        recorder.operations["createMatch"]["request"],
    ):
        del labels["to-be-canceled"], labels["simulated"]
    return played, deathmatch


def record_live_match(recorder: Recorder, server_id: str) -> Response:
    """Record the answers while a match is played. Return the answer with the match, which has no result yet."""
    service = recorder.service

    def is_live() -> bool:
        server = service.call("GET", f"/api/v1/servers/{server_id}").json
        return bool(server["match"] and sum(server["match"].get("score", {"team1": 0}).values()) >= 1)

    wait_until(is_live, "the match is live")
    recorder.call("getServer", "live", id=server_id)
    recorder.call("listServers", "servers", query="?pageSize=2")
    recorder.add_error(service.call("GET", f"/api/v1/servers/{server_id}/result"))
    record_actions(recorder, server_id)
    return service.call("GET", "/api/v1/matches/cup-17")


def record_actions(recorder: Recorder, server_id: str) -> None:
    """Record the possible actions on a live match, the request of an action, and the end of the action."""
    body = {"type": "say", "text": "Good luck to both teams", "reason": "Final", "by": "Eva Admin"}
    asked = recorder.call("requestAction", "say", body, id=server_id).json["actionId"]
    path = f"/api/v1/servers/{server_id}/actions"
    service = recorder.service
    wait_until(lambda: service.call("GET", f"{path}/{asked}").json["state"] == "done", "the text is in the log")
    recorder.call("getAction", "done", id=server_id, actionId=asked)
    recorder.call("listActions", "live", id=server_id)
    recorder.add_error(service.call("POST", path, {"type": "restore", "round": 30}))


def create_webhook(recorder: Recorder) -> str:
    """Create a webhook that receives all events of the matches; return its id."""
    body = {"url": f"{recorder.service.proxy.url}/events", "events": ["*"]}
    webhook_id: str = recorder.call("createWebhook", "all", body).json["id"]
    return webhook_id


def record_webhook(recorder: Recorder, webhook_id: str) -> None:
    """Record the operations on a webhook, and a delivery for each type of event."""
    service, events = recorder.service, recorder.service.proxy.events
    wait_until(lambda: "match.ruled" in {event["type"] for event in events}, "the events have arrived")
    recorder.call("listWebhooks", "webhooks")
    recorder.call("getWebhook", "all", webhookId=webhook_id)
    recorder.call("changeWebhook", "fewer", {"events": ["map.ended", "match.ended"]}, webhookId=webhook_id)
    recorder.call("rotateWebhookSecret", "rotated", webhookId=webhook_id)
    recorder.call("testWebhook", "test", webhookId=webhook_id)
    wait_until(lambda: "webhook.test" in {event["type"] for event in events}, "the test has arrived")
    path = f"/api/v1/webhooks/{webhook_id}/deliveries?state=delivered"
    wait_until(lambda: service.call("GET", path).json["items"], "a delivery is recorded")
    recorder.call("listDeliveries", "deliveries", query="?state=delivered", webhookId=webhook_id)
    listed = service.call("GET", path).json["items"]
    paused = next(delivery["id"] for delivery in listed if delivery["eventType"] == "match.live")
    recorder.call("getDelivery", "delivered", webhookId=webhook_id, id=paused)
    recorder.call("redeliverDelivery", "waiting", webhookId=webhook_id, id=paused)
    recorder.call("redeliverDeliveries", "since", {"since": listed[-1]["createdAt"]}, webhookId=webhook_id)
    recorder.call("deleteWebhook", "deleted", webhookId=webhook_id)
    for body in events:
        recorder.webhooks.setdefault(body["type"], {}).setdefault("event", shortened(body))
    add_unplayed_events(recorder)


def add_unplayed_events(recorder: Recorder) -> None:
    """Add examples of events that do not occur in the matches of this script, built from events that were sent."""
    live, done = (recorder.webhooks[name]["event"] for name in ("match.live", "action.done"))
    at, action = live["timestamp"], done["data"]
    item = {"seq": 31, "timestamp": at, "roundNumber": 4}
    detection: dict[str, Any] = {
        "steamId": PLAYERS[0],
        "name": "undertow",
        "team": "team1",
        "type": "Aimbot",
        "weapon": "ak47",
    }
    detection |= {"reason": "snapped 87 degrees in one tick", "mapNumber": 1, "roundNumber": 4, "detectedAt": at}
    for name, event, data in (
        ("match.paused", live, {"type": "paused", **item, "by": "mp_pause_match", "calledBy": None}),
        ("match.resumed", live, {"type": "unpaused", **item, "by": "mp_unpause_match"}),
        ("anticheat.detected", live, detection),
        ("action.failed", done, {**action, "state": "failed", "detail": "The match ended before this was done."}),
        ("demo.available", live, {"state": "available"}),
    ):
        recorder.webhooks.setdefault(name, {}).setdefault("event", {**event, "type": name, "data": data})


def record_results(recorder: Recorder, in_progress: Response) -> None:
    """Record the results and the callbacks. `in_progress` is the answer from before the result existed."""
    recorder.call("getMatchByExternalId", "competitive", externalMatchId="cup-17")
    recorder.call("getMatchByExternalId", "deathmatch", externalMatchId="warmup-3")
    recorder.add("getMatchByExternalId", "in-progress", in_progress)
    recorder.call("getMatchByExternalId", "canceled", externalMatchId="cup-18")
    server_id = recorder.service.call("GET", "/api/v1/matches/warmup-3").json["serverId"]
    recorder.call("getResult", "deathmatch", id=server_id)
    log = recorder.request(recorder.endpoints["getLog"], {"id": server_id})
    lines = [line for line in log.text.splitlines(keepends=True) if "rcon from" not in line]
    recorder.add("getLog", "lines", log._replace(text="".join(lines[-6:])))
    recorder.operations["getLog"]["parameters"] = {"id": server_id}
    by_label = {"cup-17": "competitive", "warmup-3": "deathmatch", "cup-18": "canceled", "cup-19": "incomplete-roster"}
    for body in recorder.service.proxy.callbacks:
        name = "matchOver" if body["eventType"] == "match_over" else "matchCanceled"
        recorder.webhooks.setdefault(name, {})[by_label[body["externalMatchId"]]] = shortened(body)


def record_ruling(recorder: Recorder) -> None:
    """Record a ruling on a match that canceled itself, and the withdrawal of the ruling."""
    no_show = recorder.service.call("GET", "/api/v1/matches/cup-19").json["serverId"]
    body = {"winner": "team1", "reason": "Blues did not come in time.", "by": "Eva Admin"}
    recorder.call("ruleMatch", "no-show", body, id=no_show)
    recorder.call("getMatchByExternalId", "ruled", externalMatchId="cup-19")
    recorder.call("withdrawRuling", "withdrawn", id=no_show)


def record_check(recorder: Recorder) -> None:
    """Record a check of the region: the answer to the request, and the findings."""
    recorder.call("checkRegion", "requested", code="sandbox")
    path = "/api/v1/regions/sandbox/check"
    wait_until(lambda: recorder.service.call("GET", path).json["state"] == "done", "the region has been checked")
    recorder.call("getRegionCheck", "done", code="sandbox")


def record_history(recorder: Recorder, series: str, deathmatch: str) -> None:
    """Record series, maps, rounds, timelines and leaderboards."""
    recorder.call("listSeries", "series", query="?status=finished")
    (found,) = recorder.call("listServerSeries", "series", serverId=series).json["items"]
    recorder.call("getSeries", "series", seriesId=found["seriesId"])
    recorder.call("listMaps", "maps", query="?status=finished")
    map_id = found["maps"][0]["id"]
    recorder.service.store_demo(series, b"PBDEMS2, and then the rest of the file")
    recorder.call("getMap", "competitive", mapId=map_id)
    recorder.call("getMapDemo", "available", mapId=map_id)
    recorder.call("getMapDemoFile", "file", mapId=map_id)
    path = f"/api/v1/cs2/matches/{map_id}/demo/file"
    recorder.add_error(recorder.service.call("GET", path, headers={"Range": "bytes=99-"}))
    flat = recorder.service.call("GET", f"/api/v1/cs2/matches?serverId={deathmatch}").json["items"][0]["id"]
    recorder.call("getMap", "deathmatch", mapId=flat)
    recorder.call("getMapRounds", "rounds", mapId=map_id)
    recorder.call("getMapEvents", "events", query="?limit=1000", mapId=map_id)
    recorder.call("getMapLeaderboard", "leaderboard", mapId=map_id)


def record_streams(recorder: Recorder, server_id: str) -> None:
    """Record events of up to three types per stream, each as its own example: the schema describes a single event."""
    map_id = recorder.operations["getMap"]["parameters"]["mapId"]
    for name, parameters, query in (
        ("streamMapEvents", {"mapId": map_id}, ""),
        ("streamServerEvents", {"id": server_id}, ""),
        ("streamOrganizationEvents", {}, "?lastEventId=0"),
    ):
        path = next(endpoint.path for endpoint in ENDPOINTS if endpoint.name == name).format(**parameters)
        events: dict[str, dict[str, str]] = {}
        for event in recorder.service.stream(path + query, 20):
            events.setdefault(event["event"].replace("_", "-"), event)
        recorder.operations[name] = {
            "parameters": parameters,
            "responses": {"200": dict(list(events.items())[-3:])},
        }


def record_callbacks(recorder: Recorder) -> None:
    """Record the deliveries of callbacks, and requests to redeliver them."""
    service = recorder.service
    recorder.call("listCallbacks", "callbacks", query="?state=delivered")
    listed = service.call("GET", "/api/v1/callbacks").json["items"]
    callback_id = next(item["id"] for item in listed if item["externalMatchId"] == "cup-17")
    recorder.call("getCallback", "delivered", id=callback_id)
    service.proxy.may_answer.clear()
    recorder.call("redeliverCallback", "waiting", id=callback_id)
    recorder.add_error(service.call("POST", f"/api/v1/callbacks/{callback_id}/redeliver"))
    service.proxy.may_answer.set()
    recorder.call("redeliverCallbacks", "since", {"since": listed[-1]["createdAt"]})


# --- errors and internal endpoints ----------------------------------------------------------------------------------


def record_errors(recorder: Recorder, ended: str) -> None:
    """Record the remaining errors. All are provoked, except RULING_TOO_LATE, 500 and 503, which are built."""
    service, add = recorder.service, recorder.add_error
    create = {"region": "sandbox", "gameType": "cs2", "gameSettings": {"matchType": "competitive", "map": "de_mirage"}}
    path = "/api/v1/matches"
    add(service.call("GET", "/api/v1/servers", key=""))
    add(service.call("POST", path, create, key=service.new_key("--role", "member")))
    add(service.call("GET", "/api/v1/servers/srv_0"))
    add(
        service.call(
            "POST", path, {**create, "region": "eu", "gameSettings": {"matchType": "casual", "map": "de mirage"}}
        )
    )
    recorder.add("createMatch", "not-json", service.call("POST", path, '{"region": "sandbox",}'))
    recorder.add("createMatch", "faults", Response(400, recorder.errors["INVALID_PARAMS"], ""))
    recorder.add(
        "redeliverCallbacks", "faults", service.call("POST", "/api/v1/callbacks/redeliver", {"since": "today"})
    )
    add(service.call("POST", path, " " * 300_000))
    add(service.call("POST", path, create, headers={"Content-Encoding": "gzip"}))
    add(service.call("POST", f"/api/v1/servers/{ended}/cancel"))
    server_id = service.call("POST", path, create, headers={"Idempotency-Key": "cup-20"}).json["serverId"]
    add(service.call("POST", path, {**create, "externalMatchId": "other"}, headers={"Idempotency-Key": "cup-20"}))
    add(service.call("POST", f"/api/v1/servers/{server_id}/ruling", {"winner": "none"}))
    service.call("POST", f"/api/v1/servers/{server_id}/cancel")
    busy = service.new_key("--role", "member")
    answers = (service.call("GET", "/api/v1/servers/srv_0", key=busy) for _ in range(3 * RATE_LIMIT))
    add(next(answer for answer in answers if answer.status == 429))
    too_late = RulingTooLateError("The match ended more than 30 days ago. Its rulings are final.")
    starting = UnavailableError("The service is starting. Retry later.", retry_after_s=1)
    for error in (too_late, internal_error(), starting):
        response = error_response(error, recorder.errors["NOT_FOUND"]["requestId"])
        add(Response(response.status, json.loads(response.body), ""))
    for endpoint in ENDPOINTS:
        record_common_errors(recorder, endpoint)


def record_common_errors(recorder: Recorder, endpoint: Endpoint) -> None:
    """Record the answers of an operation to unknown ids and wrong queries."""
    if endpoint.alias_of is not None:
        return
    if endpoint.name in WRONG_QUERIES and InvalidParamsError in endpoint.all_errors:
        parameters = recorder.operations[endpoint.name].get("parameters", {})
        recorder.call(endpoint.name, "invalid", query=WRONG_QUERIES[endpoint.name], **parameters)
    if NotFoundError in endpoint.all_errors:
        body = next(iter(recorder.operations.get(endpoint.name, {}).get("request", {}).values()), None)
        recorder.add(endpoint.name, "unknown", recorder.request(endpoint, UNKNOWN, body))
    if endpoint.name == "getMatchByExternalId":
        recorder.add(endpoint.name, "invalid", recorder.request(endpoint, {"externalMatchId": "%00"}))


def record_internal(recorder: Recorder) -> None:
    """Record the requests of game servers, and the endpoints for operators."""
    received = recorder.service.proxy.first
    log, report = received("POST", "/ingest/logs/", " killed "), received("POST", "/ingest/reports")
    shots, match_file = received("POST", "/ingest/shots/"), received("GET", "/ingest/match")
    for name, label, request in (
        ("takeLog", "lines", "".join(log.body.splitlines(keepends=True)[:4])),
        ("takeReport", "report", json.loads(report.body)),
        ("takeShots", "shots", shortened(json.loads(shots.body))),
        ("takeDetection", "detection", {"content": DETECTION}),
        ("getMatchFile", "match", None),
    ):
        answer = match_file.response if name == "getMatchFile" else log.response
        body = {} if request is None else {"request": {label: request}}
        recorder.operations[name] = {
            "parameters": {"token": "example-token", "X-Matchpod-Token": "example-token"},
            **body,
            "responses": {"200": {label: json.loads(answer)}},
        }
    ended = log.path.rpartition("/")[2]
    recorder.add_error(recorder.service.call("POST", f"/ingest/logs/{ended}", "L 1\n", key=""))
    for endpoint in ENDPOINTS:
        if endpoint.tag is Tag.OPERATIONS:
            record_operation(recorder, endpoint)


def record_operation(recorder: Recorder, endpoint: Endpoint) -> None:
    """Record an endpoint for operators. Only the beginning of its answer is kept."""
    parameters = {"file": "docs.css"} if "{file}" in endpoint.path else {}
    response = recorder.request(endpoint, parameters)
    if response.json is None:
        text = "".join(response.text.splitlines(keepends=True)[:6])
    elif "openapi" in response.json:
        response = response._replace(json={key: response.json[key] for key in ("openapi", "info", "servers")})
        text = ""
    else:
        text = response.text
    recorder.add(endpoint.name, "answer", response._replace(text=text))
    recorder.operations[endpoint.name].setdefault("parameters", parameters)


# --- the file -------------------------------------------------------------------------------------------------------


def without_secrets(text: str, recorder: Recorder) -> str:
    """Replace secrets and local addresses with values that are clearly examples."""
    service = recorder.service
    text = text.replace(service.proxy.url, "https://caller.example")
    for found in recorder.operations["createMatch"]["responses"]["201"].values():
        text = text.replace(found["rconPassword"], "example-rcon-password")
    for name in ("createWebhook", "rotateWebhookSecret"):
        for found in (body for bodies in recorder.operations[name]["responses"].values() for body in bodies.values()):
            text = text.replace(found.get("secret", "example-secret"), "example-secret")
    for received in service.proxy.received:
        if received.path.count("/") == 3:
            text = text.replace(received.path.rpartition("/")[2], "example-token")
    return text.replace(service.key, "mk_live_example")


def main(file: Path) -> int:
    """Record the examples and write the file."""
    with tempfile.TemporaryDirectory() as folder:
        service = RecordedService(Path(folder), rate_limit=str(RATE_LIMIT), max_body_bytes="262144")
        try:
            recorder = record(service)
            examples = json.loads(without_secrets(recorder.as_json(), recorder))
        finally:
            service.close()
    text = json.dumps(without_repeats(examples), indent=1, ensure_ascii=False) + "\n"
    file.write_text(text, encoding="utf-8")
    print(f"{file.name}: {len(recorder.operations)} operations, {len(text):,} characters")
    return 0


if __name__ == "__main__":
    sys.exit(main(FILE))
