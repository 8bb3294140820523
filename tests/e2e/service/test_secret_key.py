"""The secret key is replaced while a match is live: the match goes on, and its callback has its secrets."""

from __future__ import annotations

from pathlib import Path

from tests.e2e.service.callback_receiver import CallbackReceiver
from tests.e2e.service.running_service import RunningService, cvars, default_regions, short_match

OLD, NEW = "A" * 43 + "=", "B" * 43 + "="
AUTHORIZATION = "Bearer a.b-c/d=="


def restart(service: RunningService, regions: str, keys: str) -> None:
    """Restart a service with these keys."""
    service.configure(regions, secret_key=keys)
    assert service.terminate()[0] == 0
    service.start()


def test_live_match_survives_a_new_secret_key(tmp_path: Path) -> None:
    regions = default_regions()
    service = RunningService(tmp_path, regions=regions, settings={"secret_key": OLD})
    with CallbackReceiver() as receiver, service:
        secret = service.webhook_secret()
        created = service.create(
            short_match(customCvars=cvars(1)),
            callbackUrl=receiver.configure("/over", "accept"),
            callbackAuthToken=AUTHORIZATION,
        )
        before = service.wait_for_status(created["serverId"], "running")
        restart(service, regions, f"{NEW},{OLD}")
        done = service.run("reencrypt")
        assert (done.returncode, done.stdout.splitlines()[:2]) == (
            0,
            [
                "organizations: 1 encrypted again, 0 had the key before",
                "servers: 4 encrypted again, 0 had the key before",
            ],
        )
        restart(service, regions, NEW)
        after = service.wait_for_status(created["serverId"], "running")
        assert after["rconPassword"] == before["rconPassword"]
        assert service.cancel(created["serverId"]).status == 200
        (received,) = receiver.wait_for("/over")
        assert received.headers["authorization"] == AUTHORIZATION
        assert received.is_signed_with(secret)
        service.wait_until_released(created["serverId"])
