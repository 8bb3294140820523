"""A backup by the CronJob of the chart is restored by its Job: the containers' own commands, run on this machine."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.contract.databases import create_postgres_database, find_postgres_program
from tests.deploy.rendered_chart import KUBERNETES, Object, enclosing_chart, render
from tests.e2e.service.running_service import SHARED_KEY, RunningService, free_port_range, region, short_match

__all__ = ["enclosing_chart"]
POD = "matchpod-backup-1"
READS_ONLY = "this database is a copy: serving reads only, no match is driven"
TAKEN_OVER = "copy of a database taken over: its matches are driven from here"


class Place(NamedTuple):
    """Where pods run: what is mounted, what Secrets and the pod's fields have, and the folder of PostgreSQL."""

    mounts: Mapping[str, Path]
    variables: Mapping[str, str]
    programs: Path | None

    def run(self, container: Object) -> subprocess.CompletedProcess[str]:
        def here(text: str) -> str:
            text = re.sub(f"(?<![^=])({'|'.join(self.mounts)})", lambda found: str(self.mounts[found[0]]), text)
            return text.replace("$(POD_NAME)", POD)

        # The script of a container is no path.
        words = [
            word if "\n" in word else here(word)
            for word in (*container.get("command", ["matchpod"]), *container["args"])
        ]
        names = {"python3": [sys.executable], "matchpod": [sys.executable, "-m", "matchpod"]}
        command = [*names.get(words[0], [str((self.programs or Path()) / words[0])]), *words[1:]]
        environment = {
            one["name"]: here(one.get("value", "")) or self.variables[one["name"]] for one in container["env"]
        }
        kept = {key: value for key, value in os.environ.items() if not key.startswith("MATCHPOD_")}
        return subprocess.run(command, env=kept | environment, capture_output=True, text=True, check=False)

    def run_pod(self, pod: Object) -> list[str]:
        """Run the containers of a pod one after the other, until one fails; return what was printed."""
        printed = []
        for container in (*pod["initContainers"], *pod["containers"]):
            done = self.run({"env": [], **container})
            printed.append(done.stdout + done.stderr)
            if done.returncode:
                return [*printed, f"{container['name']} failed"]
        return printed


def pods(objects: list[Object]) -> tuple[Object, Object]:
    found = {one["kind"]: one for one in objects if one["metadata"]["name"].endswith(("-backup", "-restore"))}
    return found["CronJob"]["spec"]["jobTemplate"]["spec"]["template"]["spec"], found["Job"]["spec"]["template"]["spec"]


@pytest.mark.parametrize("kind", ["sqlite", pytest.param("postgresql", marks=pytest.mark.soak)])
def test_backup_of_the_chart_is_restored_by_its_job(
    enclosing_chart: Path, kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    is_postgres = kind == "postgresql"
    urls = [create_postgres_database(request) if is_postgres else None for _ in range(2)]
    regions = region("sandbox", free_port_range(2), speed=300)
    original, copied = (
        RunningService(tmp_path / name, regions=regions, database_url=url)
        for name, url in zip(("original", "copied"), urls, strict=True)
    )
    backup_pod, restore_pod = pods(
        render(enclosing_chart, KUBERNETES[-1])["restored-postgresql" if is_postgres else "restored"]
    )
    programs = find_postgres_program(request, "pg_dump").parent if is_postgres else None
    folders = {"/backup": tmp_path / "backup", "/run/connection": tmp_path / "connection"}
    for folder in folders.values():
        folder.mkdir()
    places = [
        Place(
            {"/var/lib/matchpod": service.folder, **folders},
            {"POD_NAME": POD, "MATCHPOD_DATABASE_URL": url or "", "MATCHPOD_SECRET_KEY": SHARED_KEY},
            programs,
        )
        for service, url in zip((original, copied), urls, strict=True)
    ]
    with original:
        server = original.create(short_match())["serverId"]
        ended = original.wait_for_status(server, "stopped")
        assert places[0].run_pod(backup_pod)[-1].endswith(f"{POD}{'.dump' if is_postgres else '.tar'}\n")
        copied.key = original.key
    printed = places[1].run_pod(restore_pod)
    assert any(f"to be restored: {POD}" in text for text in printed), printed
    with copied:
        logged = [entry["message"] for entry in copied.log()]
        assert (READS_ONLY in logged) is not is_postgres, printed
        assert copied.get(server) == ended
    if not is_postgres:
        taken_over = copied.run("migrate", "--restored")
        assert taken_over.stdout.endswith("\nIts matches are driven from here from now on.\n")
    with copied:
        assert not {READS_ONLY, TAKEN_OVER} & {entry["message"] for entry in copied.log()}
    (folders["/run/connection"] / "backup").unlink()
    again = places[1].run_pod(restore_pod)
    assert again[-1] == "restore failed", "a database that is not empty is never written over"
    with copied:
        assert copied.get(server) == ended


def test_backup_that_does_not_exist_is_reported_with_those_that_do(enclosing_chart: Path, tmp_path: Path) -> None:
    _, pod = pods(render(enclosing_chart, KUBERNETES[-1])["restored"])
    (find,) = [one for one in pod["initContainers"] if one["name"] == "find"]
    place = Place({"/backup": tmp_path, "/run/connection": tmp_path / "connection"}, {}, None)
    done = place.run({"env": [], **find})
    assert (done.returncode, done.stderr) == (1, "there is no backup latest; backups: none\n")
    (tmp_path / "a-1.tar").touch()
    (tmp_path / "a-2.tar").touch()
    find["args"][2] = "a-3.tar"
    assert place.run({"env": [], **find}).stderr == "there is no backup a-3.tar; backups: a-1.tar, a-2.tar\n"
