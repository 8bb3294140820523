"""The API shows the demo of a map, and sends its file, a part of it, or the way to it."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import msgspec
import pytest

from matchpod.adapters.demo_storage.folder import FolderStorage
from matchpod.core.demos import DemoState, MissingReason
from matchpod.core.match.played_map import MapStatus
from matchpod.service.reading.demos import Demos
from matchpod.storage import demos, history, organizations, servers
from matchpod.storage.demos import DemoRow, Upload, UploadEnd
from tests.contract.match_histories import MapState, map_id, match_history
from tests.server_rows import server_row
from tests.unit.web import sites
from tests.unit.web.sites import Site

site = sites.site

BODY = b"0123456789"
SHA = hashlib.sha256(BODY).hexdigest()
MAP, OTHER_MAP = map_id("srv_1", 1), map_id("srv_1", 2)
URL = f"/api/v1/cs2/matches/{MAP}/demo"


class Bucket(FolderStorage):
    """A storage from which callers download themselves."""

    async def link(self, key: str, *, file_name: str, expires_s: int) -> str:  # type: ignore[override]
        return f"https://s3.example/{key}?name={file_name}&for={expires_s}"

    def read(self, key: str, start: int, size: int) -> AsyncIterator[bytes] | None:  # type: ignore[override]
        raise AssertionError("callers do it")


def org_of(site: Site) -> str:
    (found, *_) = site.run(organizations.list(site.db))
    return found.id


def add(site: Site, *files: MissingReason | None) -> None:
    """Add a match of two maps, the first of which has these files: available, or missing for a reason."""
    org_id = org_of(site)
    row = server_row("srv_1", org_id=org_id)
    site.run(servers.create(site.db, row, idempotency=None))
    states = [MapState(MapStatus.FINISHED, 1), MapState(MapStatus.CANCELLED, 2), MapState(MapStatus.CANCELLED, 3)]
    maps = match_history("srv_1", states, org_id=org_id)
    site.run(site.db.write(history.insert(maps)))
    demo = DemoRow(
        id="", org_id=org_id, server_id="srv_1", map_id=MAP, map_number=1, attempt=row.attempt, token_hash="t",
        state=DemoState.UPLOADING, created_at_ms=sites.NOW_MS,
    )  # fmt: skip
    for number, reason in enumerate(files, 1):
        site.run(add_file(site, demo, number, reason))


async def add_file(site: Site, demo: DemoRow, number: int, reason: MissingReason | None) -> None:
    key, now_ms = f"org/{number}", sites.NOW_MS + number
    upload = Upload(upload_id=f"u{number}", owner="me", file_name=f"{number}.dem", announced_bytes=10, storage_key=key)
    begun = await demos.begin(site.db, demo, upload, now_ms)
    if reason is None:
        writer = await site.demo_storage.create(key)
        await writer.write(BODY)
        await writer.commit()
    ended = UploadEnd(
        reason=reason,
        received_bytes=10 if reason is None else 4,
        stored_bytes=10,
        sha256=SHA if reason is None else None,
        storage_key=key,
    )
    await demos.end(site.db, begun.id, ended, upload_id=f"u{number}", now_ms=now_ms)


def get(site: Site, url: str = f"{URL}/file", **headers: str) -> httpx.Response:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return site.request("GET", url, key=site.key, headers=named)


def test_all_files_of_a_map_are_listed(site: Site) -> None:
    add(site, MissingReason.CUT, None)
    shown = get(site, URL).json()
    assert {name: shown[name] for name in ("mapId", "state", "reason", "size", "sha256")} == {
        "mapId": MAP, "state": "available", "reason": None, "size": 10, "sha256": SHA,
    }  # fmt: skip
    first, second = shown["files"]
    assert first == {
        "number": 1, "fileName": "1.dem", "state": "missing", "reason": "cut", "size": 4, "sha256": None,
        "uploadedAt": first["uploadedAt"],
    }  # fmt: skip
    assert (second["number"], second["state"], second["size"], second["sha256"]) == (2, "available", 10, SHA)


def test_demo_is_in_the_map_and_in_the_series(site: Site) -> None:
    add(site, None)
    demo = {"state": "available", "reason": None, "size": 10, "sha256": SHA}
    shown = get(site, f"/api/v1/cs2/matches/{MAP}").json()
    assert shown["demo"] == demo
    maps = get(site, f"/api/v1/cs2/series/{shown['seriesId']}").json()["maps"]
    assert [one.get("demo") for one in maps] == [demo, None, None]


def test_demo_that_is_recorded_has_no_size_yet(site: Site) -> None:
    add(site)
    row = server_row("srv_1", org_id=org_of(site))
    site.run(site.db.write([demos.expect(row, map_id=MAP, map_number=1, now_ms=1)]))
    shown = get(site, URL).json()
    assert (shown["state"], shown["size"]) == ("recording", None)
    assert shown["files"] == [
        {"number": 1, "fileName": None, "state": "recording", "reason": None, "size": None, "sha256": None,
         "uploadedAt": None}
    ]  # fmt: skip
    assert get(site).status_code == 404


def test_map_without_a_demo_has_none(site: Site) -> None:
    add(site, None)
    assert get(site, URL.replace(MAP, OTHER_MAP)).status_code == 404
    assert "demo" not in get(site, f"/api/v1/cs2/matches/{OTHER_MAP}").json()


def test_file_is_downloaded_with_its_name_and_checksum(site: Site) -> None:
    add(site, None, MissingReason.CUT)
    answer = get(site)
    assert (answer.status_code, answer.content) == (200, BODY)
    assert answer.headers["content-disposition"] == 'attachment; filename="1.dem"'
    assert (answer.headers["etag"], answer.headers["accept-ranges"]) == (f'"{SHA}"', "bytes")
    assert (answer.headers["content-length"], answer.headers["content-type"]) == ("10", "application/octet-stream")
    assert get(site, f"{URL}/file?number=1").content == BODY
    assert [get(site, f"{URL}/file?number={number}").status_code for number in (2, 3)] == [404, 404]
    head = site.request("HEAD", f"{URL}/file", key=site.key)
    assert (head.status_code, head.content, head.headers["content-length"]) == (200, b"", "10")


@pytest.mark.parametrize(
    ("wanted", "content", "shown"),
    [
        ("bytes=2-5", b"2345", "bytes 2-5/10"),
        ("bytes=7-", b"789", "bytes 7-9/10"),
        ("bytes=-4", b"6789", "bytes 6-9/10"),
        ("bytes=0-99", BODY, "bytes 0-9/10"),
    ],
)
def test_part_of_a_file_is_downloaded(site: Site, wanted: str, content: bytes, shown: str) -> None:
    add(site, None)
    answer = get(site, Range=wanted)
    assert (answer.status_code, answer.content, answer.headers["content-range"]) == (206, content, shown)
    assert answer.headers["content-length"] == str(len(content))
    resumed = get(site, Range=wanted, If_Range=f'"{SHA}"')
    assert (resumed.status_code, resumed.content) == (206, content)
    other = get(site, Range=wanted, If_Range='"other"')
    assert (other.status_code, other.content) == (200, BODY)


def test_part_after_the_end_is_an_error_with_the_size(site: Site) -> None:
    add(site, None)
    answer = get(site, Range="bytes=10-")
    assert (answer.status_code, answer.headers["content-range"]) == (416, "bytes */10")
    assert answer.json()["error"] == "RANGE_NOT_SATISFIABLE"


def test_file_in_a_bucket_is_a_redirect(site: Site, tmp_path: Path) -> None:
    add(site, None)
    bucket = Demos(db=site.db, history=site.services.history, storage=Bucket(tmp_path))
    site.services = msgspec.structs.replace(site.services, demos=bucket)
    site.open_web()
    answer = get(site, Range="bytes=2-5")
    assert (answer.status_code, answer.content) == (302, b"")
    assert answer.headers["location"] == "https://s3.example/org/1?name=1.dem&for=900"


def test_file_that_is_gone_is_not_found(site: Site) -> None:
    add(site, None)
    site.run(site.demo_storage.delete("org/1"))
    assert get(site).status_code == 404


def test_demo_of_another_organization_is_forbidden(site: Site) -> None:
    add(site, None)
    for url in (URL, f"{URL}/file"):
        assert site.get(url, site.other_key).status_code == 403
