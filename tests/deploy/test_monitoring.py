"""The Grafana board and the alerts: what they ask for exists, is answered, and each alert fires when it should."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml  # type: ignore[import-untyped]

from scripts import write_board
from tests.contract.agones_cluster import agones_region, secret_file, write_kubeconfig
from tests.deploy.prometheus_programs import PROMTOOLS, find_program
from tests.deploy.promql import Series, find_missing, metrics_in, read_series
from tests.e2e.service.callback_receiver import CallbackReceiver
from tests.e2e.service.running_service import RunningService, free_port_range, region, short_match, wait_until

ROOT = Path(__file__).resolve().parents[2]
MONITORING = ROOT / "deploy" / "monitoring"
ALERTS_FILE = ROOT / "deploy" / "chart" / "matchpod" / "files" / "alerts.yaml"
RUNBOOKS = ROOT / "docs" / "runbooks"
RUNBOOK_URL = "https://git.example.net/matchpod/blob/main/docs/runbooks"
"""What the chart replaces with the address of the operator's copy."""
UNREACHABLE = "http://127.0.0.1:1"
CALL_S = 60.0

Json = dict[str, Any]

BOARD: Json = json.loads(write_board.BOARD.read_text("utf-8"))
GROUPS: list[Json] = yaml.safe_load(ALERTS_FILE.read_text("utf-8"))["groups"]
RULES: list[Json] = [rule for group in GROUPS for rule in group["rules"]]
ALERTS: dict[str, Json] = {rule["alert"]: rule for rule in RULES if "alert" in rule}
RECORDED: dict[str, str] = {rule["record"]: rule["expr"] for rule in RULES if "record" in rule}
ALERT_TESTS: list[Json] = yaml.safe_load((MONITORING / "tests" / "alerts.yaml").read_text("utf-8"))["tests"]


def panels() -> list[Json]:
    """Return all panels, also those in collapsed rows, without the rows themselves."""
    every = [inner for outer in BOARD["panels"] for inner in (outer, *outer.get("panels", ()))]
    return [panel for panel in every if panel["type"] != "row"]


TARGETS = [(panel["title"], target) for panel in panels() for target in panel["targets"]]


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningService]:
    """A service that has played a match to its callback; it also has a region in a cluster, which is down."""
    folder = tmp_path_factory.mktemp("monitored")
    cluster = agones_region("cluster", write_kubeconfig(folder / "kubeconfig", UNREACHABLE), secret_file(folder))
    regions = region("sandbox", free_port_range(1), speed=300) + cluster
    with RunningService(folder / "service", regions=regions) as running, CallbackReceiver() as receiver:
        running.create(short_match(), callbackUrl=receiver.url("/"))
        receiver.wait_for("/")
        yield running


@pytest.fixture(scope="module")
def series(service: RunningService) -> Series:
    """All series of the service, after its gauges were set."""

    def read() -> Series | None:
        text = httpx.get(f"{service.url}/metrics", timeout=CALL_S).text
        is_counted = re.search(r"^matchpod_callback_attempts_total.*delivered.* 1$", text, re.M)
        found = read_series(text)
        return found if is_counted and {"matchpod_slots", "matchpod_disk_free_bytes"} <= found.keys() else None

    return wait_until(read, "the callback is counted and gauges are set")


# --- the board ------------------------------------------------------------------------------------------------------


def test_board_is_what_the_script_writes() -> None:
    assert write_board.BOARD.read_text("utf-8") == write_board.text()


def test_panels_have_ids_and_places_of_their_own() -> None:
    ids = [panel["id"] for outer in BOARD["panels"] for panel in (outer, *outer.get("panels", ()))]
    assert len(ids) == len(set(ids)) > 40
    taken: set[tuple[int, int]] = set()
    for outer in BOARD["panels"]:
        for panel in (outer, *outer.get("panels", ())):
            place = panel["gridPos"]
            assert place["x"] + place["w"] <= 24
            cells = {(place["x"] + x, place["y"] + y) for x in range(place["w"]) for y in range(place["h"])}
            assert not cells & taken, panel["title"]
            taken |= cells


def test_panels_say_what_to_do_and_name_runbooks_that_exist() -> None:
    for panel in panels():
        assert panel["description"].endswith("."), panel["title"]
        assert panel["fieldConfig"]["defaults"]["unit"], panel["title"]
        assert panel["datasource"]["uid"] == "${datasource}"
    named = set(re.findall(r"\bMatchpod[A-Z]\w+", json.dumps(BOARD)))
    assert len(named) > 10
    assert named <= set(ALERTS)


def test_queries_use_variables_that_the_board_has() -> None:
    names = {variable["name"] for variable in BOARD["templating"]["list"]}
    used = set(re.findall(r"\$\{?(\w+)", json.dumps(BOARD))) - {"__rate_interval", "__all"}
    assert used == names == {"datasource", "job", "instance", "region"}
    assert [title for title, target in TARGETS if 'job=~"$job", instance=~"$instance"' not in target["expr"]] == []


def test_what_the_board_asks_for_exists(series: Series) -> None:
    missing = {}
    for title, target in TARGETS:
        legend = re.findall(r"\{\{(\w+)\}\}", target["legendFormat"])
        if faults := find_missing(target["expr"], series, more_labels=legend):
            missing[title] = faults
    for variable in BOARD["templating"]["list"]:
        if faults := find_missing(variable.get("definition", ""), series):
            missing[variable["name"]] = faults
    assert missing == {}


def test_shared_numbers_are_never_summed_over_replicas(series: Series) -> None:
    shared = {name for name, labels in series.items() if any("scope" in one for one in labels)}
    assert {"matchpod_servers", "matchpod_slots", "matchpod_callbacks_waiting"} <= shared
    for query in [*(target["expr"] for _, target in TARGETS), *(rule["expr"] for rule in RULES)]:
        for name in metrics_in(query) & shared:
            once = re.findall(rf"\bmax (?:(?:without|by) \([^)]*\) )?\({name}\b|\bmax\({name}\b", query)
            assert len(once) == len(re.findall(rf"\b{name}\b", query)), query


def test_missing_metrics_labels_and_values_are_found() -> None:
    series = read_series('matchpod_a{region="eu",state="free"} 1\nmatchpod_b 2\n')
    assert find_missing('sum by (region, instance) (matchpod_a{state=~"free"}) / matchpod_b', series) == []
    assert find_missing("matchpod_c", series) == ["matchpod_c"]
    assert find_missing('matchpod_a{zone="x"}', series) == ["matchpod_a{zone}"]
    assert find_missing('matchpod_a{state=~"free|lost"}', series) == ['matchpod_a{state="lost"}']
    assert find_missing("sum by (zone) (matchpod_b)", series, more_labels=["host"]) == ["host", "zone"]


# --- the alerts -----------------------------------------------------------------------------------------------------


def test_what_the_alerts_ask_for_exists(series: Series) -> None:
    missing = {}
    for name, rule in ALERTS.items():
        query = rule["expr"]
        if all(metric.startswith("kube_") for metric in metrics_in(query)):
            continue  # of kube-state-metrics
        for record, expr in RECORDED.items():
            query = query.replace(record, f"({expr})")
        labels = re.findall(r"\$labels\.(\w+)", " ".join(rule["annotations"].values()))
        if faults := find_missing(query, series, more_labels=labels):
            missing[name] = faults
    assert missing == {}
    assert all(any(record in rule["expr"] for rule in ALERTS.values()) for record in RECORDED)


@pytest.mark.parametrize("name", ALERTS)
def test_alert_has_a_severity_texts_and_a_runbook(name: str) -> None:
    rule = ALERTS[name]
    assert rule["labels"]["severity"] in ("warning", "critical")
    assert set(rule["annotations"]) == {"summary", "description", "runbook_url"}
    assert rule["annotations"]["description"].endswith(".")
    assert rule["annotations"]["runbook_url"].startswith(f"{RUNBOOK_URL}/")
    page = RUNBOOKS / rule["annotations"]["runbook_url"].removeprefix(f"{RUNBOOK_URL}/")
    text = page.read_text("utf-8")
    assert text.startswith(f"# {name}\n")
    assert re.findall(r"^## (.*)$", text, re.M) == ["What it means", "What to look at", "What to do"]
    assert f"[{name}]({page.name})" in (RUNBOOKS / "README.md").read_text("utf-8")


def test_every_runbook_belongs_to_an_alert() -> None:
    pages = {f"{RUNBOOK_URL}/{page.name}" for page in RUNBOOKS.glob("*.md")} - {f"{RUNBOOK_URL}/README.md"}
    assert pages == {rule["annotations"]["runbook_url"] for rule in ALERTS.values()}


def test_runbooks_name_panels_and_metrics_that_exist(series: Series) -> None:
    titles = {panel["title"] for panel in panels()}
    for page in RUNBOOKS.glob("*.md"):
        text = page.read_text("utf-8")
        assert set(re.findall(r"(?<!\*)\*([A-Z][^*]+)\*(?!\*)", text.replace("\n  ", " "))) <= titles, page.name
        missing = [one for one in re.findall(r"`((?:matchpod|process)_[a-z_]+)`", text) if one not in series]
        assert missing == [], page.name


def test_every_alert_is_tested_to_be_quiet_and_to_fire() -> None:
    tested: dict[str, set[bool]] = {}
    for test in ALERT_TESTS:
        cases = {bool(case.get("exp_alerts")) for case in test["alert_rule_test"]}
        tested[test["name"]] = tested.get(test["name"], set()) | cases
    assert tested == {name: {False, True} for name in ALERTS}
    for test in ALERT_TESTS:
        assert {case["alertname"] for case in test["alert_rule_test"]} == {test["name"]}


@pytest.mark.parametrize("name", PROMTOOLS)
def test_promtool_accepts_the_alerts_and_their_tests_pass(name: str) -> None:
    promtool = find_program(name)
    for command in (["check", "rules", str(ALERTS_FILE)], ["test", "rules", "tests/alerts.yaml"]):
        done = subprocess.run([promtool, *command], cwd=MONITORING, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr


def test_promtool_accepts_the_metrics_and_the_example(service: RunningService, tmp_path: Path) -> None:
    promtool = find_program("promtool")
    metrics = httpx.get(f"{service.url}/metrics", timeout=CALL_S).content
    done = subprocess.run([promtool, "check", "metrics"], input=metrics, capture_output=True, check=False)
    assert (done.returncode, done.stderr.decode()) == (0, "")
    for file in (MONITORING / "prometheus.yml", ALERTS_FILE):  # as docs/monitoring.md says
        shutil.copy(file, tmp_path)
    example = ["check", "config", str(tmp_path / "prometheus.yml")]
    checked = subprocess.run([promtool, *example], capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stdout + checked.stderr


# --- a real Prometheus ----------------------------------------------------------------------------------------------


@contextmanager
def prometheus(folder: Path, target: str) -> Iterator[httpx.Client]:
    """Run Prometheus with the example, but with another target and shorter intervals; yield a client of its API."""
    program = find_program("prometheus")
    config = yaml.safe_load((MONITORING / "prometheus.yml").read_text("utf-8"))
    config["global"] = {"scrape_interval": "1s", "evaluation_interval": "1s"}
    config["rule_files"] = [str(ALERTS_FILE)]
    config["scrape_configs"][0]["static_configs"] = [{"targets": [target]}]
    (folder / "prometheus.yml").write_text(yaml.safe_dump(config))
    port = free_port_range(1)[0]
    options = [f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/data"]
    with (folder / "output").open("wb") as output:
        process = subprocess.Popen(
            [program, *options, f"--web.listen-address=127.0.0.1:{port}"], stdout=output, stderr=output
        )
    try:
        with httpx.Client(base_url=f"http://127.0.0.1:{port}/api/v1", timeout=CALL_S) as client:
            yield client
    finally:
        process.kill()
        process.wait()


def query(client: httpx.Client, expr: str) -> list[Json]:
    """Return the answer to a query of the board: all variables have the value All."""
    expr = re.sub(r"\$(job|instance|region)", ".*", expr.replace("$__rate_interval", "1m"))
    answer = client.get("/query", params={"query": expr}).json()
    assert answer["status"] == "success", (expr, answer)
    found: list[Json] = answer["data"]["result"]
    return found


def is_scraped(client: httpx.Client) -> bool:
    """True if the metrics were read three times, and the rules were evaluated with them: the fleet has a fault."""
    try:
        answer = client.get("/rules")
    except httpx.TransportError:
        return False  # it does not listen yet
    if answer.status_code != httpx.codes.OK:
        return False  # it is starting
    rules = [rule for group in answer.json()["data"]["groups"] for rule in group["rules"]]
    is_evaluated = bool(query(client, 'ALERTS{alertname="MatchpodFleetFault"}')) and all(
        rule["health"] != "unknown" for rule in rules
    )
    return is_evaluated and bool(query(client, "count_over_time(up[1m]) >= 3 and up == 1"))


def test_real_prometheus_answers_every_query_and_evaluates_every_rule(service: RunningService, tmp_path: Path) -> None:
    with prometheus(tmp_path, service.url.removeprefix("http://")) as client:
        wait_until(lambda: is_scraped(client), "Prometheus has read the metrics and evaluated the rules")
        assert [title for title, target in TARGETS if not query(client, target["expr"])] == []
        query(client, BOARD["annotations"]["list"][0]["expr"])
        groups = client.get("/rules").json()["data"]["groups"]
        rules = {rule["name"]: rule for group in groups for rule in group["rules"]}
        assert {name: rule["health"] for name, rule in rules.items()} == dict.fromkeys([*ALERTS, *RECORDED], "ok")
        assert rules["MatchpodFleetFault"]["state"] in ("pending", "firing")
