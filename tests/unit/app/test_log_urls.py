"""Regions whose game servers cannot reach the service at their log URL."""

from __future__ import annotations

from pathlib import Path

import pytest

from matchpod.app.log_urls import unreachable_log_urls
from matchpod.settings import load_settings

HERE = "http://127.0.0.1:8080"
SERVICE = "http://matchpod.matchpod.svc:8080"
PUBLIC = "https://matches.example.net"


def static(*addresses: str) -> str:
    servers = ", ".join(f'{{ address = "{address}", rcon_password = "x" }}' for address in addresses)
    return f'kind = "static"\nservers = [{servers}]'


def agones(tmp_path: Path, server: str | None) -> str:
    fleet = 'kind = "agones"\nfleet = "cs2"\nsecret_file = "secret"\n'
    if server is None:
        return fleet
    file = tmp_path / "kubeconfig"
    file.write_text(
        "current-context: a\n"
        "contexts: [{name: a, context: {cluster: c, user: u}}]\n"
        f"clusters: [{{name: c, cluster: {{server: '{server}'}}}}]\n"
        "users: [{name: u, user: {token: x}}]\n"
    )
    return f'{fleet}kubeconfig = "{file}"'


def faults(fleet: str, base: str, *, more: str = "", **variables: str) -> list[str]:
    text = f'[[regions]]\ncode = "eu"\n{more}\n[regions.fleet]\n{fleet}\n'
    settings = load_settings({f"MATCHPOD_{name}": value for name, value in variables.items()}, lambda _: text.encode())
    return list(unreachable_log_urls(settings, base))


@pytest.mark.parametrize(
    ("addresses", "base", "problem"),
    [
        (("203.0.113.7:27015", "127.0.0.1:27015"), HERE, "this machine only"),
        (("10.0.0.7:27015",), HERE, "this machine only"),
        (("10.0.0.7:27015",), "http://localhost:8080", "this machine only"),
        (("127.0.0.1:27015",), HERE, None),
        (("10.0.0.7:27015",), SERVICE, None),  # it may be a pod
        (("8.8.4.4:27015",), SERVICE, "a name in a cluster"),
        (("8.8.4.4:27015",), "http://matchpod.games.svc.cluster.local.", "a name in a cluster"),
        (("8.8.4.4:27015",), "http://10.0.0.1:8080", None),  # through a tunnel or a router
        (("8.8.4.4:27015",), PUBLIC, None),
    ],
)
def test_static_servers_elsewhere_need_a_url_for_other_machines(
    addresses: tuple[str, ...], base: str, problem: str | None
) -> None:
    found = faults(static(*addresses), base)
    if problem is None:
        assert found == []
    else:
        (fault,) = found
        assert fault.startswith(f"Region eu: its game servers cannot reach the service at {base}, which is {problem}")
        assert fault.endswith("Set MATCHPOD_LOG_URL, or log_url of the region, to a URL that they can reach.")


@pytest.mark.parametrize(
    ("server", "base", "is_refused"),
    [
        (None, HERE, True),
        (None, SERVICE, False),
        ("https://kubernetes.default.svc", HERE, True),
        ("https://kubernetes.default.svc.cluster.local", SERVICE, False),
        ("https://api.east.example:6443", HERE, True),
        ("https://api.east.example:6443", SERVICE, True),
        ("https://api.east.example:6443", PUBLIC, False),
        ("https://127.0.0.1:6443", HERE, False),
    ],
)
def test_cluster_elsewhere_needs_a_url_outside_of_clusters(
    tmp_path: Path, server: str | None, base: str, *, is_refused: bool
) -> None:
    assert bool(faults(agones(tmp_path, server), base)) is is_refused


def test_processes_of_this_machine_reach_it_anyway() -> None:
    assert faults('kind = "process"\nports = "27100-27102"', HERE) == []


def test_log_url_of_the_region_comes_first() -> None:
    elsewhere = static("8.8.4.4:27015")
    assert faults(elsewhere, HERE, LOG_URL=PUBLIC) == []
    assert len(faults(elsewhere, PUBLIC, LOG_URL=SERVICE)) == 1
    assert faults(elsewhere, HERE, LOG_URL=SERVICE, more=f'log_url = "{PUBLIC}"') == []
    assert len(faults(elsewhere, PUBLIC, more=f'log_url = "{SERVICE}"')) == 1
