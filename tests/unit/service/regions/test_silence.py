from __future__ import annotations

from msgspec.structs import replace

from matchpod.core.servers.server_loss import Silence
from matchpod.service.regions.silence import SilentServers


def silence(since_ms: int = 0, *, region: str = "eu", host: str = "10.0.0.1") -> Silence:
    return Silence(region=region, host=host, since_ms=since_ms)


def test_number_never_falls_during_a_silence() -> None:
    silent = SilentServers()
    for number in range(20):
        silent.report(f"srv_{number}", silence(number * 100))
    for number in range(19):
        silent.forget(f"srv_{number}")
    assert silent.report("srv_19", silence(1_900)) == 20
    silent.forget("srv_19")
    assert silent.report("srv_19", silence(70_000)) == 1, "a new silence"


def test_servers_of_one_host_in_two_regions_are_silent_together() -> None:
    silent = SilentServers()
    silent.report("srv_1", silence(0, region="eu"))
    assert silent.report("srv_2", silence(0, region="us")) == 2
    assert "several fell silent together" in (silent.notice("eu") or "")
    assert "90 s" in (silent.notice("us") or "")


def test_silence_of_a_server_is_forgotten() -> None:
    silent = SilentServers()
    assert (silent.since_ms("srv_1"), silent.notice("eu")) == (None, None)
    silent.report("srv_1", silence(5))
    assert silent.since_ms("srv_1") == 5
    assert "30 s" in (silent.notice("eu") or "")
    silent.forget("srv_1")
    silent.forget("srv_1")
    assert (silent.since_ms("srv_1"), silent.notice("eu"), silent.count("eu")) == (None, None, 0)


def test_servers_of_other_processes_are_silent_together_with_ours() -> None:
    silent = SilentServers()
    assert silent.report("srv_1", silence(100_000)) == 1
    silent.set_remote({"srv_2": silence(-5_000), "srv_3": silence(-60_000), "srv_4": silence(0, region="us")}, 110_000)
    assert silent.report("srv_1", silence(100_000)) == 3, "srv_3 has another cause"
    assert silent.report("srv_5", silence(101_000)) == 4
    assert "4 servers have given no sign of life" in (silent.notice("eu") or "")
    assert "several fell silent together" in (silent.notice("eu") or "")
    assert (silent.count("eu"), silent.count("us")) == (2, 0), "only ours"


def test_silence_is_the_same_in_all_processes() -> None:
    ours, theirs = SilentServers(), SilentServers()
    ours.report("srv_1", silence(100_000))
    ours.report("srv_2", silence(170_000))
    theirs.set_remote(ours.shared(180_000), 180_000)
    assert [one.since_ms("srv_1") for one in (ours, theirs)] == [100_000, 100_000]
    assert "2 servers" in (ours.notice("eu") or "")
    assert theirs.notice("eu") == ours.notice("eu")
    ours.report("srv_3", silence(105_000))
    theirs.set_remote(ours.shared(180_000), 180_000)
    assert "several fell silent together" in (theirs.notice("eu") or "")
    assert theirs.notice("eu") == ours.notice("eu")
    theirs.set_remote({}, 181_000)
    assert (theirs.since_ms("srv_1"), theirs.notice("eu")) == (None, None)


def test_server_that_loads_a_map_is_silent_together_with_others_but_warns_no_one() -> None:
    silent, other = SilentServers(), SilentServers()
    loading = replace(silence(0), is_loading=True)
    silent.report("srv_1", loading)
    assert (silent.since_ms("srv_1"), silent.notice("eu"), silent.count("eu")) == (None, None, 0)
    other.set_remote(silent.shared(1_000), 1_000)
    assert (other.since_ms("srv_1"), other.notice("eu")) == (None, None)
    assert silent.report("srv_2", silence(2_000)) == 2
    silent.report("srv_1", silence(0))
    assert silent.since_ms("srv_1") == 0
    assert "2 servers" in (silent.notice("eu") or "")


def test_number_does_not_fall_because_a_server_of_another_process_recovers() -> None:
    silent = SilentServers()
    silent.report("srv_1", silence(0))
    silent.set_remote({"srv_2": silence(0)}, 0)
    silent.set_remote({}, 0)
    assert silent.report("srv_1", silence(0)) == 2, "also if it was not reported meanwhile"


def test_server_is_not_silent_together_with_itself() -> None:
    """The process that probed it before may still report it."""
    silent = SilentServers()
    silent.set_remote({"srv_1": silence(0)}, 0)
    assert silent.report("srv_1", silence(0)) == 1


def test_silent_server_of_another_process_is_near_if_it_has_the_same_host_or_region() -> None:
    silent = SilentServers()
    silent.set_remote({"srv_1": silence(0)}, 0)
    assert silent.has_near(silence(region="us"))
    assert silent.has_near(silence(host="10.0.0.2"))
    assert not silent.has_near(silence(region="us", host="10.0.0.2"))
    silent.set_remote({}, 0)
    assert not silent.has_near(silence())
