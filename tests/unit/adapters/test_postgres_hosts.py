"""A URL with several hosts is one URL per host, for hosts that can be written to."""

from __future__ import annotations

import pytest

from matchpod.adapters.postgres_hosts import split_hosts


@pytest.mark.parametrize(
    "url",
    ["postgresql://pod:p%2Cw@db:5432/pod", "postgresql:///pod?host=/run/postgresql", "postgresql://pod@[::1]/pod"],
)
def test_url_with_one_host_is_not_changed(url: str) -> None:
    assert split_hosts(url) == [url]


def test_several_hosts_must_be_writable() -> None:
    assert split_hosts("postgresql://pod:p%2Cw@db1:5432,db2/pod?sslmode=require") == [
        "postgresql://pod:p%2Cw@db1:5432/pod?sslmode=require&target_session_attrs=read-write",
        "postgresql://pod:p%2Cw@db2/pod?sslmode=require&target_session_attrs=read-write",
    ]
    assert split_hosts("postgres://db1,db2/pod") == [
        "postgres://db1/pod?target_session_attrs=read-write",
        "postgres://db2/pod?target_session_attrs=read-write",
    ]


def test_url_may_say_which_hosts_may_be_used() -> None:
    assert split_hosts("postgresql://db1,db2/pod?target_session_attrs=any") == [
        "postgresql://db1/pod?target_session_attrs=any",
        "postgresql://db2/pod?target_session_attrs=any",
    ]
