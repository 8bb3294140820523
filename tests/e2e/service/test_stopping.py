"""The service is stopped while matches are running: it exits cleanly, and the next run finishes the matches."""

from __future__ import annotations

from pathlib import Path

from tests.e2e.service.callback_receiver import CallbackReceiver
from tests.e2e.service.event_readers import EventReaders
from tests.e2e.service.read_history import read_timelines
from tests.e2e.service.running_service import (
    RunningService,
    cvars,
    default_regions,
    free_port_range,
    players,
    region,
    short_match,
    slow_command,
    wait_until,
)

STOP_S = 100.0


def test_matches_survive_a_stop_and_are_finished_by_the_next_run(database_url: str | None, tmp_path: Path) -> None:
    # Servers start slowly and timeouts are in real time: the join timeout continues while no process drives the match.
    slow = region("real", free_port_range(1), speed=1, command=slow_command(6))
    regions = default_regions() + slow
    with (
        CallbackReceiver() as receiver,
        RunningService(tmp_path, regions=regions, database_url=database_url) as service,
        EventReaders() as readers,
    ):
        settings = {
            "live": short_match(maxRounds=10, customCvars=cvars(60)),
            "warmup": short_match(customCvars=cvars(60, "late_join")),
            "deathmatch": {
                "matchType": "deathmatch",
                "map": "de_dust2",
                "dmRoundMinutes": 10,
                "players": players(4),
                "customCvars": cvars(60),
            },
        }
        created = {
            name: service.create(one, externalMatchId=name, callbackUrl=receiver.url(f"/{name}"))["serverId"]
            for name, one in settings.items()
        }
        created["starting"] = service.create(
            short_match(), region="real", externalMatchId="starting", callbackUrl=receiver.url("/starting")
        )["serverId"]
        followed = {name: readers.follow(server_id, service) for name, server_id in created.items()}
        callback_url = receiver.configure("/canceled", "hang", "accept")
        canceled = service.create(short_match(), callbackUrl=callback_url)["serverId"]
        assert service.cancel(canceled).status == 200
        service.wait_for(
            created["live"], lambda server: bool(server["match"]) and server["match"]["score"]["team1"] > 0
        )
        wait_until(lambda: service.server_processes(created["starting"]), "the process has started")
        receiver.wait_for("/canceled")
        games = set(service.server_processes())
        wait_until(lambda: followed["live"].pushed, "the stream has received an event")

        code, duration_s = service.terminate()
        assert code == 0
        assert duration_s < STOP_S
        wait_until(lambda: all(one.ends for one in followed.values()), "all streams are closed")
        assert [(one.ends, one.breaks) for one in followed.values()] == [(1, 0)] * len(followed)
        assert {game.server_id for game in service.server_processes()} >= set(created.values())
        assert set(service.server_processes()) <= games
        assert service.log()[-1]["message"] == "stopped"

        service.start()
        for name, server_id in created.items():
            body = receiver.wait_for(f"/{name}")[0].json
            assert body["eventType"] == "match_over", body
            result = body["result"]
            listed = result["players"] if name == "deathmatch" else result["overall"]
            assert {player["steamId"] for player in listed} == set(players(4))
            assert service.get(server_id)["status"] == "stopped"
        service.wait_until_released(*created.values(), canceled)
        readers.finish()
        for name, one in followed.items():
            one.assert_received(read_timelines(service, created[name]))
            assert (one.ends, one.breaks) == (2, 0)
        first, second = receiver.wait_for("/canceled", 2)
        assert (second.id, second.body) == (first.id, first.body)
        assert service.server_processes() == []
        assert [len(receiver.at(f"/{name}")) for name in created] == [1] * len(created)
