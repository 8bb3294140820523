"""The examples in deploy for one machine: unit file, proxies and firewall, checked with the real programs."""

from __future__ import annotations

import re
import shutil
import socket
import ssl
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from tests.e2e.serve_process import ServeProcess, serving
from tests.e2e.service.running_service import free_port_range, wait_until

DEPLOY = Path(__file__).parents[2] / "deploy"
LIMIT_S = 60.0
STRANGER = "127.0.0.2"
"""An address that the examples, as changed below, do not list as a game server."""
TOKEN = "b0b5e7a1c9d3f2"

NGINX = """
daemon off;
{user}
pid {folder}/nginx.pid;
error_log {folder}/error.log;
events {{}}
http {{
    access_log {folder}/other.log;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    include {folder}/matchpod.conf;
}}
"""


def program(name: str) -> str:
    found = shutil.which(name) or shutil.which(name, path="/usr/sbin:/sbin")
    if found is None:
        pytest.skip(f"{name} is not installed")
    return found


def replaced(text: str, *changes: tuple[str, str]) -> str:
    for before, after in changes:
        assert before in text, f"the example has no {before!r}"
        text = text.replace(before, after)
    return text


def certificate(folder: Path) -> tuple[Path, Path]:
    files = folder / "tls.crt", folder / "tls.key"
    subject = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"]
    make = [program("openssl"), "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
    made = [*make, *subject, "-out", str(files[0]), "-keyout", str(files[1])]
    subprocess.run(made, check=True, capture_output=True, timeout=LIMIT_S)
    return files


def nginx_command(folder: Path, port: int, plain_port: int, service: str) -> list[str]:
    crt, key = certificate(folder)
    example = replaced(
        (DEPLOY / "proxy" / "nginx.conf").read_text(),
        ("listen 80;", f"listen 127.0.0.1:{plain_port};"),
        ("listen 443 ssl", f"listen 127.0.0.1:{port} ssl"),
        ("    listen [::]:80;\n", ""),
        ("    listen [::]:443 ssl http2;\n", ""),
        ("/etc/letsencrypt/live/matches.example.net/fullchain.pem", str(crt)),
        ("/etc/letsencrypt/live/matches.example.net/privkey.pem", str(key)),
        ("matches.example.net", "localhost"),
        ("/var/log/nginx/matchpod.log", str(folder / "access.log")),
        ("127.0.0.1:8080", service),
        ("127.0.0.0/8", "127.0.0.1/32"),
    )
    (folder / "matchpod.conf").write_text(example)
    user = f"user {Path(folder).owner()};"  # of the workers, which must be able to write here
    (folder / "nginx.conf").write_text(NGINX.format(folder=folder, user=user))
    return [program("nginx"), "-p", str(folder), "-c", str(folder / "nginx.conf"), "-e", str(folder / "error.log")]


def caddy_command(folder: Path, port: int, plain_port: int, service: str) -> list[str]:
    crt, key = certificate(folder)
    example = replaced(
        (DEPLOY / "proxy" / "Caddyfile").read_text(),
        ("	email operator@example.net\n", f"	admin off\n	auto_https off\n	http_port {plain_port}\n"),
        ("matches.example.net {\n", f"https://localhost:{port} {{\n	bind 127.0.0.1\n	tls {crt} {key}\n"),
        ("/var/log/caddy/matchpod.log", str(folder / "access.log")),
        ("127.0.0.1:8080", service),
        ("127.0.0.0/8", "127.0.0.1/32"),
    )
    (folder / "Caddyfile").write_text(example)
    return [program("caddy"), "run", "--adapter", "caddyfile", "--config", str(folder / "Caddyfile")]


COMMANDS = {"nginx": nginx_command, "caddy": caddy_command}


@contextmanager
def running_proxy(folder: Path, command: Callable[[Path, int, int, str], list[str]], service: str) -> Iterator[int]:
    """Run a proxy in front of a service; yields its port."""
    port, plain_port = free_port_range(2)
    with (folder / "output").open("wb") as output:
        arguments = command(folder, port, plain_port, service)
        environment = {"HOME": str(folder), "XDG_DATA_HOME": str(folder)}
        process = subprocess.Popen(arguments, stdout=output, stderr=output, env=environment)
    try:

        def listens() -> bool:
            assert process.poll() is None, (folder / "output").read_text()
            with socket.socket() as probe:
                return probe.connect_ex(("127.0.0.1", port)) == 0

        wait_until(listens, "the proxy listens", within_s=LIMIT_S)
        yield port
    finally:
        process.terminate()
        try:
            process.wait(LIMIT_S)
        finally:
            process.kill()


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServeProcess]:
    """A service behind all proxies."""
    with serving(tmp_path_factory.mktemp("service")) as running:
        assert running.url
        yield running


def selected_protocol(port: int) -> str | None:
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.set_alpn_protocols(["h2", "http/1.1"])
    with (
        socket.create_connection(("127.0.0.1", port), LIMIT_S) as plain,
        context.wrap_socket(plain, server_hostname="localhost") as encrypted,
    ):
        return encrypted.selected_alpn_protocol()


@pytest.mark.parametrize("name", COMMANDS)
def test_proxy_follows_the_rules_of_the_security_page(name: str, service: ServeProcess, tmp_path: Path) -> None:
    program(name)
    key = {"Authorization": f"Bearer {service.key}"}
    with running_proxy(tmp_path, COMMANDS[name], service.url.removeprefix("http://")) as port:
        assert selected_protocol(port) == "h2"
        url = f"https://localhost:{port}"
        with httpx.Client(base_url=url, verify=False, timeout=LIMIT_S) as client:
            assert client.get("/healthz").status_code == 200
            listed = client.get("/api/v1/servers", headers=key)
            assert (listed.status_code, listed.headers["strict-transport-security"]) == (200, "max-age=31536000")
            for path in ("/metrics", "/readyz", "/openapi-internal.json"):
                assert client.get(path).status_code == 404
            assert client.post("/api/v1/matches", headers=key, content=b" " * 300_000).status_code == 413
            post = client.post(f"/ingest/logs/{TOKEN}", content=b"x" * 300_000)
            assert post.json()["statusCode"] == post.status_code, "the service has answered"
            for path in (f"/console/login/{TOKEN}", f"/overlay/{TOKEN}"):
                client.get(path)
            with client.stream("GET", "/api/v1/stream", headers=key) as stream:
                assert stream.headers["content-type"].startswith("text/event-stream")
                assert next(stream.iter_bytes())
        from_elsewhere = httpx.HTTPTransport(verify=False, local_address=STRANGER)
        with httpx.Client(base_url=url, transport=from_elsewhere, timeout=LIMIT_S) as stranger:
            assert stranger.get("/healthz").status_code == 200
            assert stranger.post(f"/ingest/logs/{TOKEN}", content=b"x").status_code == 403
    log = (tmp_path / "access.log").read_text()
    others = [path.read_text() for path in (tmp_path / "other.log", tmp_path / "error.log") if path.exists()]
    assert "/api/v1/servers" in log
    for secret in (TOKEN, service.key):
        assert secret not in "".join([log, *others, (tmp_path / "output").read_text()])


def test_unit_is_valid_and_hardened(tmp_path: Path) -> None:
    analyze = program("systemd-analyze")
    unit = replaced(
        (DEPLOY / "systemd" / "matchpod.service").read_text(),
        ("/opt/matchpod/bin/matchpod", f"{sys.executable} -m matchpod"),
        ("User=matchpod\nGroup=matchpod\n", "User=daemon\n"),
    )
    (tmp_path / "matchpod.service").write_text(unit)
    drop_ins = tmp_path / "matchpod.service.d"
    drop_ins.mkdir()
    for name in ("game-servers.conf", "steam-runtime.conf"):
        shutil.copy(DEPLOY / "systemd" / name, drop_ins)
    verified = subprocess.run(
        [analyze, "verify", str(tmp_path / "matchpod.service")],
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )
    faults = [line for line in verified.stderr.splitlines() if "matchpod" in line]
    assert (verified.returncode, faults) == (0, []), verified.stderr
    shutil.rmtree(drop_ins)
    rated = subprocess.run(
        [analyze, "security", "--offline=yes", "--no-pager", str(tmp_path / "matchpod.service")],
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )
    exposure = re.search(r"Overall exposure level for matchpod\.service: ([\d.]+)", rated.stdout)
    assert exposure, rated.stderr
    assert float(exposure[1]) <= 2.0, rated.stdout


def test_unit_leaves_game_servers_running_and_visible_at_a_restart() -> None:
    lines = (DEPLOY / "systemd" / "matchpod.service").read_text().splitlines()
    assert "KillMode=process" in lines
    for option in ("PrivateUsers=", "RemoveIPC=", "ProcSubset=", "PrivatePIDs=", "DynamicUser="):
        assert not [line for line in lines if line.startswith(option)], "see the comment in the unit"


def test_command_reads_the_settings_of_the_unit(tmp_path: Path) -> None:
    """The paths are replaced, and `id` says that we are the user of the service."""
    (tmp_path / "id").write_text("#!/bin/sh\necho matchpod\n")
    (tmp_path / "program").write_text('#!/bin/sh\necho "$MATCHPOD_PORT $MATCHPOD_DATA_DIR $PWD $*"\n')
    (tmp_path / "settings").write_text("MATCHPOD_PORT='18080'\n")
    for name in ("id", "program"):
        (tmp_path / name).chmod(0o755)
    folder = tmp_path / "data"
    paths = ("/var/lib/matchpod", str(folder)), ("/etc/matchpod/matchpod.env", str(tmp_path / "settings"))
    script = replaced((DEPLOY / "systemd" / "matchpod.sh").read_text(), *paths)
    script = replaced(script, ("/opt/matchpod/bin/matchpod", str(tmp_path / "program")))

    def run() -> subprocess.CompletedProcess[str]:
        command = ["sh", "-c", script, "matchpod", "match", "list"]
        return subprocess.run(command, env={"PATH": f"{tmp_path}:/bin"}, capture_output=True, text=True, check=False)

    done = run()
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == f"matchpod: {folder} does not exist. Start the service first: systemctl start matchpod\n"
    folder.mkdir()
    assert run().stdout == f"18080 {folder} {folder} match list\n"


def test_firewall_is_valid() -> None:
    nft, unshare = program("nft"), program("unshare")
    isolated = [unshare, "--map-root-user", "--net"]
    if subprocess.run([*isolated, "true"], capture_output=True, timeout=LIMIT_S, check=False).returncode:
        pytest.skip("this machine allows no network namespaces")
    # Twice, as at a reload.
    load = f'"{nft}" -f "$0" && "{nft}" -f "$0" && "{nft}" list ruleset'
    done = subprocess.run(
        [*isolated, "sh", "-c", load, str(DEPLOY / "firewall" / "nftables.conf")],
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("policy drop") == 2
