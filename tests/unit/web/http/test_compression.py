"""Which responses are compressed, and for whom."""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import AsyncIterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from matchpod.web.http.compression import MAX_INLINE_BYTES, MAX_KEPT, MIN_BYTES, accepts_gzip, compress, compress_parts
from matchpod.web.http.responses import Response
from tests.unit.web import histories, sites
from tests.unit.web.sites import Site

site = sites.site

WANTED = {"headers": [(b"accept-encoding", b"gzip")]}


def compressed(site: Site, method: str = "GET", path: str = "/openapi.json") -> httpx.Response:
    return site.request(method, path, headers={"Accept-Encoding": "gzip, deflate, br"})


def test_large_response_is_compressed_if_asked(site: Site) -> None:
    plain, packed = site.request("GET", "/openapi.json"), compressed(site)
    assert packed.headers["content-encoding"] == "gzip"
    assert packed.headers["vary"] == plain.headers["vary"] == "accept-encoding"
    assert packed.content == plain.content
    assert int(packed.headers["content-length"]) < int(plain.headers["content-length"]) / 4
    assert "content-encoding" not in plain.headers
    assert int(plain.headers["content-length"]) == len(plain.content)


def test_head_has_the_headers_of_the_compressed_response(site: Site) -> None:
    head, got = compressed(site, "HEAD"), compressed(site)
    assert head.content == b""
    for name in ("content-encoding", "content-length", "vary"):
        assert head.headers[name] == got.headers[name]


def test_small_responses_and_streams_are_not_compressed(site: Site) -> None:
    server_id = histories.new_series(site)
    histories.finish(site, server_id)
    headers = {"Accept-Encoding": "gzip"}
    for path in ("/healthz", "/api/v1/regions", f"/api/v1/servers/{server_id}/stream"):
        response = site.request("GET", path, key=site.key, headers=headers)
        assert response.status_code == 200
        assert "content-encoding" not in response.headers


@pytest.mark.parametrize(("size", "is_packed"), [(MIN_BYTES - 1, False), (MIN_BYTES, True)])
def test_size_from_which_bodies_are_compressed(size: int, is_packed: bool) -> None:
    response = asyncio.run(compress(Response(b"a" * size), WANTED))
    assert ((b"content-encoding", b"gzip") in response.headers) == is_packed
    assert (gzip.decompress(response.body) if is_packed else response.body) == b"a" * size


class CountingThreads(ThreadPoolExecutor):
    """Threads that count what they are given to do."""

    submitted = 0

    def submit(self, *args: Any, **kwargs: Any) -> Future[Any]:
        self.submitted += 1
        return super().submit(*args, **kwargs)


@pytest.mark.parametrize(("size", "in_threads"), [(MAX_INLINE_BYTES, 0), (MAX_INLINE_BYTES + 1, 1)])
def test_large_bodies_do_not_hold_up_the_event_loop(size: int, in_threads: int) -> None:
    threads = CountingThreads()

    async def main() -> Response:
        asyncio.get_running_loop().set_default_executor(threads)
        return await compress(Response(b"a" * size), WANTED)

    assert gzip.decompress(asyncio.run(main()).body) == b"a" * size
    assert threads.submitted == in_threads


@pytest.mark.parametrize(
    ("header", "is_accepted"),
    [
        ("gzip", True),
        ("GZIP;q=0.5", True),
        ("deflate, br , gzip", True),
        ("x-gzip", True),
        ("*", True),
        ("*;q=0", False),
        ("gzip;q=0", False),
        ("gzip; q=0.000, *", False),
        ("gzip;q=much", False),
        ("identity", False),
        ("notgzip", False),
        ("", False),
    ],
)
def test_what_a_client_accepts(header: str, is_accepted: bool) -> None:
    assert accepts_gzip([(b"accept-encoding", header.encode())]) == is_accepted


def test_repeated_headers_count_as_one_list() -> None:
    assert accepts_gzip([(b"accept-encoding", b"br"), (b"accept-encoding", b"gzip")])
    assert not accepts_gzip([])


def test_shared_body_is_compressed_once() -> None:
    body = b"m" * (MAX_INLINE_BYTES + 1)

    async def both(*, is_shared: bool) -> list[bytes]:
        response = Response(body, is_shared=is_shared)
        return [(await compress(response, WANTED)).body for _ in range(2)]

    first, second = asyncio.run(both(is_shared=True))
    assert first is second
    assert gzip.decompress(first) == body
    first, second = asyncio.run(both(is_shared=False))
    assert first == second
    assert first is not second


def test_compressed_forms_of_few_shared_bodies_are_kept() -> None:
    bodies = [b"%d" % number * MIN_BYTES for number in range(MAX_KEPT + 1)]

    async def compress_all() -> list[bytes]:
        return [
            (await compress(Response(body, is_shared=True), WANTED)).body for body in [*bodies, bodies[-1], bodies[0]]
        ]

    packed = asyncio.run(compress_all())
    assert packed[-2] is packed[-3]
    assert packed[-1] is not packed[0]


@given(st.lists(st.binary(max_size=200_000), max_size=5))
def test_parts_are_compressed_to_the_same_content(parts: list[bytes]) -> None:
    async def compressed_parts() -> bytes:
        async def source() -> AsyncIterator[bytes]:
            for part in parts:
                yield part

        return b"".join([part async for part in compress_parts(source())])

    assert gzip.decompress(asyncio.run(compressed_parts())) == b"".join(parts)
