"""A fake of the Kubernetes API with Agones: real HTTP on the loopback address, game servers that really listen.

It answers as the real one was seen to answer, including what is odd, and it can be told to fail in every way that the
real one may fail. It knows what the fleet uses and nothing else.
"""

from __future__ import annotations

import asyncio
import copy
import itertools
import json
import re
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import suppress
from enum import StrEnum

from scripts.agones_manifest import role_rules
from tests.contract.agones_game_servers import GameServers
from tests.contract.agones_http import HOST, Call, HangUpError, Object, Reply, ReplyError, status_object

NAMESPACE = "default"
FLEET = "cs2-eu"
SET_UP_TOKEN = "the-token-of-the-set-up"
"""Its account has all rights: it creates what the service must not create."""
HIDDEN_S = 0.05
"""Time between two steps of a game server's life."""

_EXPIRED_PAGE = (
    "The provided continue parameter is too old to display a consistent list result. You can start a new list without "
    "the continue parameter"
)
_LABEL = re.compile(r"([A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?)?")


class Fault(StrEnum):
    """What goes wrong with a call. AFTER: the call has had its effect by then."""

    HANG = "no answer"
    HANG_AFTER = "no answer, after the effect"
    CLOSE = "connection closed"
    CLOSE_AFTER = "connection closed, after the effect"
    LATE = "connection closed, the effect comes later"
    TEXT_500 = "could not update the selected GameServer"
    TEXT_500_AFTER = "failed, after the effect"
    TEXT_503 = "error trying to reach service: dial tcp 10.0.0.1:443: connect: connection refused"
    GARBAGE = "an answer that is no JSON"
    CONTENTION = "another process was faster"
    UNALLOCATED = "no server, although one is ready"
    BUSY_429 = "Too many requests, please try again later."
    BUSY_503 = "The server is not ready to handle the request yet."
    EXPIRED_PAGE = "the versions of a list's first page are gone when the next one is read"


_AFTER = {Fault.HANG_AFTER: Fault.HANG, Fault.CLOSE_AFTER: Fault.CLOSE, Fault.TEXT_500_AFTER: Fault.TEXT_500}


class Backup:
    def __init__(self, version: int, objects: dict[str, Object]) -> None:
        self.version = version
        self.objects = objects


class FakeAgones:
    """The state of the cluster, and what goes wrong in it."""

    def __init__(self, game_servers: GameServers) -> None:
        self.game_servers = game_servers
        self.objects: dict[str, Object] = {}
        self.fleets: dict[str, int] = {FLEET: 0}
        """Names of the Fleets, with the number of game servers that each keeps."""
        self.calls: list[Call] = []
        self.faults: dict[str, list[Fault]] = {}
        """What goes wrong with the next calls, by right such as `create gameserverallocations`; one each."""
        self.before: dict[str, Callable[[], None]] = {}
        """What happens between two calls of the service: right before its next call with a right, once."""
        self.outage: Fault | None = None
        """What goes wrong with all calls."""
        self.granted = {
            f"{verb} {resource}" for rule in role_rules() for resource in rule["resources"] for verb in rule["verbs"]
        }
        """The rights of the service: those of the role in deploy/examples."""
        self.forbidden: set[str] = set()
        """Those that it does not have nevertheless."""
        self.tokens: set[str] | None = None
        """The accepted tokens; None for no authentication."""
        self.has_agones = True
        self.allocate_s = 0.0
        """How long an allocation takes, as Agones collects requests for some time."""
        self.late_s = 0.3
        self.is_late_over = asyncio.Event()
        """Ends the wait of calls whose effect comes later, before their time."""
        self.finalize_s = HIDDEN_S
        """Time between the deletion of a game server and its end."""
        self.start_s = HIDDEN_S
        self.bookmark_s = 0.2
        self.are_watches_frozen = False
        """Open watches send nothing and do not end, like a connection that is half open."""
        self.watches_frozen = 0
        """How many watches have noticed that."""
        self.is_ready = True
        """What it answers at `/readyz`."""
        self.retry_after = "1"
        """What a busy API asks for in Retry-After."""
        self.is_gone_an_event = True
        """Whether an old version is answered as an ERROR event, or as status 410."""
        self.watches_opened = 0
        self.readiness_probes = 0
        self._history: list[tuple[int, str, Object]] = []
        self._oldest = 0
        self._numbers = itertools.count(1)
        self._version = 100
        self._changed = asyncio.Event()
        self._watch_generation = 0
        self._tasks: set[asyncio.Task[None]] = set()
        self._pages: dict[str, tuple[int, list[Object]]] = {}
        """What is left of lists that were read in part, by token, with their version."""

    # --- what tests do ------------------------------------------------------------------------------------------------

    async def scale(self, replicas: int, fleet: str = FLEET) -> None:
        """Set the size of a Fleet, and start the missing game servers."""
        self.fleets[fleet] = replicas
        while len(self._of_fleet(fleet)) < replicas:
            await self._start_server(fleet)

    def close_watches(self) -> None:
        self._watch_generation += 1
        self._wake()

    def expire_versions(self) -> None:
        """Forget all history, and close the watches: they cannot go on where they were."""
        self._version += 1
        self._oldest = self._version
        self._history.clear()
        self.close_watches()

    def back_up(self) -> Backup:
        return Backup(self._version, copy.deepcopy(self.objects))

    def restore(self, backup: Backup) -> None:
        """Restore etcd: objects and versions are those of the backup, while all pods go on.

        A watch from a version that does not exist yet is accepted and stays silent until it does.
        """
        self._version = self._oldest = backup.version
        self.objects = copy.deepcopy(backup.objects)
        self._history.clear()
        self._pages.clear()

    def delete(self, name: str) -> None:
        """Begin the deletion of a game server, as a node drain or an operator does."""
        server = self.objects[name]
        if "deletionTimestamp" not in server["metadata"]:
            server["metadata"]["deletionTimestamp"] = _timestamp()
            self._record("MODIFIED", server)
            self._begin(self._finalize(name))

    def remove_silently(self, name: str) -> None:
        """Remove a game server without an event, as while no watch is open and the history is lost."""
        del self.objects[name]
        self.game_servers.stop(name)

    def set_state(self, name: str, state: str) -> None:
        self.objects[name]["status"]["state"] = state
        self._record("MODIFIED", self.objects[name])
        if state == "RequestReady":
            self.set_state(name, "Ready")

    def sdk_ready(self, name: str) -> None:
        """Let a process in the pod call `SDK.Ready()`: Agones accepts it from an allocated server too, labels stay."""
        self.set_state(name, "RequestReady")

    def fail(self, name: str) -> None:
        """Let a game server crash: it is Unhealthy, its Fleet replaces it, and then it is deleted."""
        self.game_servers.stop(name)
        self.set_state(name, "Unhealthy")
        fleet = self.objects[name]["metadata"]["labels"].get("agones.dev/fleet")
        if fleet in self.fleets:
            self._begin(self._start_server(fleet))
        self.set_state(name, "Shutdown")
        self.delete(name)

    def names(self, state: str) -> list[str]:
        return sorted(
            name
            for name, one in self.objects.items()
            if one["status"]["state"] == state and "deletionTimestamp" not in one["metadata"]
        )

    def count_calls(self, right: str) -> int:
        return sum(call.right == right for call in self.calls)

    # --- game servers -------------------------------------------------------------------------------------------------

    def _of_fleet(self, fleet: str) -> list[Object]:
        return [one for one in self.objects.values() if one["metadata"]["labels"].get("agones.dev/fleet") == fleet]

    async def _start_server(self, fleet: str) -> None:
        name = f"{fleet}-vbrtd-{next(self._numbers):05d}"
        labels = {"agones.dev/fleet": fleet, "agones.dev/gameserverset": f"{fleet}-vbrtd"}
        metadata: Object = {"name": name, "namespace": NAMESPACE, "uid": f"uid-{name}", "labels": labels}
        metadata["creationTimestamp"] = _timestamp()
        # Go writes an empty list as null.
        status: Object = {"state": "Scheduled", "ports": None, "address": "", "addresses": None}
        self.objects[name] = {
            "apiVersion": "agones.dev/v1",
            "kind": "GameServer",
            "metadata": metadata,
            "status": status,
        }
        self._record("ADDED", self.objects[name])
        port = await self.game_servers.start(name)
        addresses = [("InternalIP", HOST), ("Hostname", "node-a"), ("PodIP", "10.1.2.3")]
        status |= {
            "state": "Ready",
            "ports": [{"name": "game-tcp", "port": port}, {"name": "game-udp", "port": port}],
            "address": "node-a.example",
            "addresses": [{"type": kind, "address": address} for kind, address in addresses],
            "nodeName": "node-a",
        }
        self._record("MODIFIED", self.objects[name])

    async def _finalize(self, name: str) -> None:
        await asyncio.sleep(self.finalize_s)
        if "deletionTimestamp" not in self.objects.get(name, {"metadata": {}})["metadata"]:
            return  # a restored etcd knows nothing of it
        server = self.objects.pop(name)
        self.game_servers.stop(name)
        self._record("DELETED", server)
        fleet = server["metadata"]["labels"].get("agones.dev/fleet", "")
        await asyncio.sleep(self.start_s)
        if len(self._of_fleet(fleet)) < self.fleets.get(fleet, 0):
            await self._start_server(fleet)

    def _record(self, event: str, server: Object) -> None:
        self._version += 1
        server["metadata"]["resourceVersion"] = str(self._version)
        self._history.append((self._version, event, copy.deepcopy(server)))
        self._wake()

    def _wake(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()

    def _begin(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def close(self) -> None:
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self.game_servers.close()

    # --- calls --------------------------------------------------------------------------------------------------------

    async def answer(self, call: Call) -> Reply:
        """Answer a call that is no watch; raise HangUpError to close its connection."""
        if call.path == "/readyz" and self.outage in (None, Fault.BUSY_429, Fault.BUSY_503):
            self.readiness_probes += 1
            return Reply(200, "ok") if self.is_ready else Reply(500, "[-]poststarthook/start-apiextensions failed\n")
        self.calls.append(call)
        if self.tokens is not None and call.token not in self.tokens:
            return Reply(401, status_object(401, "Unauthorized", "Unauthorized"))
        queue = self.faults.get(call.right)
        is_spared = queue is not None and queue[:1] == [Fault.EXPIRED_PAGE] and "continue" not in call.query
        fault = self.outage or (queue.pop(0) if queue and not is_spared else None)
        if fault is Fault.EXPIRED_PAGE:
            self._pages.clear()
            fault = None
        if fault is Fault.LATE:
            self._begin(self._answer_late(call))
            raise HangUpError
        if fault is not None and fault not in _AFTER:
            await self._fail(fault)
        try:
            reply = await self._answer(call)
        except ReplyError as raised:
            reply = raised.reply
        if fault is not None:
            await self._fail(_AFTER[fault])
        return reply

    async def _fail(self, fault: Fault) -> None:
        match fault:
            case Fault.HANG:
                await asyncio.sleep(3600)
            case Fault.CLOSE:
                raise HangUpError
            case Fault.GARBAGE:
                raise ReplyError(Reply(200, "<html>"))
            case Fault.CONTENTION | Fault.UNALLOCATED:
                state = "Contention" if fault is Fault.CONTENTION else "UnAllocated"
                raise ReplyError(Reply(201, _allocation({"state": state, "gameServerName": "", "source": ""})))
            case Fault.BUSY_429 | Fault.BUSY_503:
                status = 429 if fault is Fault.BUSY_429 else 503
                raise ReplyError(Reply(status, f"{fault}\n", {"Retry-After": self.retry_after}))
            case _:
                raise ReplyError(Reply(503 if fault is Fault.TEXT_503 else 500, f"{fault}\n"))

    async def _answer_late(self, call: Call) -> None:
        with suppress(TimeoutError):
            await asyncio.wait_for(self.is_late_over.wait(), self.late_s)
        with suppress(ReplyError):
            await self._answer(call)

    async def _answer(self, call: Call) -> Reply:
        if call.path == "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews":
            wanted = json.loads(call.body)["spec"]["resourceAttributes"]
            is_allowed = f"{wanted['verb']} {wanted['resource']}" in self.granted - self.forbidden
            return Reply(201, {"kind": "SelfSubjectAccessReview", "status": {"allowed": is_allowed}})
        if not self.has_agones:
            return Reply(404, "404 page not found\n")
        self.check_right(call)
        self.before.pop(call.right, lambda: None)()
        if call.kind == "gameserverallocations":
            return await self._allocate(call)
        if call.kind in ("fleets", "gameservers") and call.method == "POST":
            return self._create(call)
        if call.kind == "fleets":
            return self._read_fleets(call)
        if call.verb == "watch" and int(call.query["resourceVersion"]) < self._oldest and not self.is_gone_an_event:
            return Reply(410, self._gone(int(call.query["resourceVersion"])))
        if call.kind == "gameservers":
            return self._list(call) if not call.name else self._use_server(call)
        return Reply(404, "404 page not found\n")

    def check_right(self, call: Call) -> None:
        if call.token != SET_UP_TOKEN and call.right not in self.granted - self.forbidden:
            message = (
                f'{call.kind}.{call.group} is forbidden: User "system:serviceaccount:default:matchpod" cannot '
                f'{call.verb} resource "{call.kind}" in API group "{call.group}" in the namespace "{call.namespace}"'
            )
            raise ReplyError(Reply(403, status_object(403, "Forbidden", message)))

    async def _allocate(self, call: Call) -> Reply:
        await asyncio.sleep(self.allocate_s)
        spec = json.loads(call.body)["spec"]
        selector, labels = spec["selectors"][0], spec["metadata"]["labels"]
        if not all(map(_LABEL.fullmatch, (*selector["matchLabels"].values(), *labels.values()))):
            return Reply(422, status_object(422, "Invalid", "GameServerAllocation is invalid: spec.metadata.labels"))
        for name in self.names("Ready") if call.namespace == NAMESPACE else ():
            server = self.objects[name]
            if _matches(selector, server["metadata"]["labels"]):
                server["metadata"]["labels"] |= labels
                annotations = server["metadata"].setdefault("annotations", {})
                annotations["agones.dev/last-allocated"] = _timestamp(is_exact=True)
                server["status"]["state"] = "Allocated"
                self._record("MODIFIED", server)
                status = {**server["status"], "gameServerName": name, "source": "local"}
                about = {"labels": server["metadata"]["labels"], "annotations": annotations}
                return Reply(201, _allocation({**status, "metadata": about}, name))
        return Reply(201, _allocation({"state": "UnAllocated", "gameServerName": "", "source": ""}))

    def _create(self, call: Call) -> Reply:
        """Create a Fleet without game servers, or a development server, which is ready without a pod."""
        created: Object = json.loads(call.body)
        name = created["metadata"]["name"]
        if call.kind == "fleets":
            self.fleets[name] = created["spec"]["replicas"]
            return Reply(201, self._fleet(name))
        created["metadata"] |= {"uid": f"uid-{name}", "namespace": NAMESPACE}
        created["status"] = {"state": "Creating", "ports": None, "address": "", "addresses": None, "nodeName": ""}
        self.objects[name] = created
        self._record("ADDED", created)
        reply = Reply(201, created)
        self._begin(self._ready(created))
        return reply

    async def _ready(self, server: Object) -> None:
        await asyncio.sleep(self.start_s)
        if server["metadata"]["name"] not in self.objects:
            return
        address = server["metadata"]["annotations"]["agones.dev/dev-address"]
        server["status"] |= {
            "state": "Ready",
            # Not split by protocol, unlike a port that Agones chooses.
            "ports": [{"name": port["name"], "port": port["hostPort"]} for port in server["spec"]["ports"]],
            "address": address,
            "addresses": [{"type": "InternalIP", "address": address}],
            "nodeName": address,
        }
        self._record("MODIFIED", server)

    def _read_fleets(self, call: Call) -> Reply:
        fleets = {name: self._fleet(name) for name in self.fleets} if call.namespace == NAMESPACE else {}
        if not call.name:
            return Reply(200, {"kind": "FleetList", "items": list(fleets.values())})
        if call.name not in fleets:
            return _not_found(call)
        if call.method == "DELETE":
            del self.fleets[call.name]
        return Reply(200, fleets[call.name])

    def _fleet(self, name: str) -> Object:
        states = [one["status"]["state"] for one in self._of_fleet(name)]
        status = {"replicas": len(states), "readyReplicas": states.count("Ready")}
        status |= {"allocatedReplicas": states.count("Allocated"), "reservedReplicas": 0}
        return {"kind": "Fleet", "metadata": {"name": name, "namespace": NAMESPACE}, "status": status}

    def _list(self, call: Call) -> Reply:
        """Answer a list, or one page of it: all pages show the versions of the first one."""
        token, limit = call.query.get("continue"), int(call.query.get("limit", "0"))
        if token is not None and token not in self._pages:
            return Reply(410, status_object(410, "Expired", _EXPIRED_PAGE))
        if token is None:
            found = (self.objects[name] for name in sorted(self.objects))
            items = [one for one in found if call.namespace == NAMESPACE and _is_selected(one, call)]
            version = self._version
        else:
            version, items = self._pages[token]
        metadata: Object = {"resourceVersion": str(version)}
        if limit and len(items) > limit:
            metadata |= {"continue": f"page-{next(self._numbers)}", "remainingItemCount": len(items) - limit}
            self._pages[metadata["continue"]] = version, copy.deepcopy(items[limit:])
            items = items[:limit]
        # Kubernetes 1.35 writes an empty list of these as []; elsewhere Go writes null, which must be read too.
        return Reply(200, {"kind": "GameServerList", "metadata": metadata, "items": items or None})

    def _use_server(self, call: Call) -> Reply:
        server = self.objects.get(call.name)
        if server is None or call.namespace != NAMESPACE:
            return _not_found(call)
        if call.method == "PATCH":
            self.set_state(call.name, json.loads(call.body)["status"]["state"])
        if call.method == "DELETE":
            conditions = json.loads(call.body or b"{}").get("preconditions", {})
            for condition, name in (("uid", "UID"), ("resourceVersion", "ResourceVersion")):
                if conditions.get(condition) not in (None, server["metadata"][condition]):
                    message = _unmet(server, name, conditions[condition], server["metadata"][condition])
                    return Reply(409, status_object(409, "Conflict", message))
            self.delete(call.name)
        return Reply(200, server)

    def _gone(self, version: int) -> Object:
        return status_object(410, "Expired", f"too old resource version: {version} ({self._oldest})")

    async def watch(self, call: Call) -> AsyncIterator[Object]:
        version = int(call.query["resourceVersion"])
        if version < self._oldest:
            yield {"type": "ERROR", "object": self._gone(version)}
            return
        self.watches_opened += 1
        generation = self._watch_generation
        end_s = time.monotonic() + float(call.query["timeoutSeconds"])
        is_idle = is_frozen = False
        while time.monotonic() < end_s or self.are_watches_frozen:
            if generation != self._watch_generation:
                return
            changed = self._changed
            if not self.are_watches_frozen:
                for number, event, server in self._history:
                    if number > version and _is_selected(server, call):
                        version = number
                        yield {"type": event, "object": server}
                if is_idle and call.query.get("allowWatchBookmarks") and self._version >= version:
                    version = self._version
                    bookmark = {"kind": "GameServer", "metadata": {"resourceVersion": str(version)}}
                    yield {"type": "BOOKMARK", "object": bookmark}
            elif not is_frozen:
                is_frozen = True
                self.watches_frozen += 1
            with suppress(TimeoutError):
                await asyncio.wait_for(changed.wait(), self.bookmark_s)
            is_idle = not changed.is_set()


def _allocation(status: Object, name: str | None = None) -> Object:
    metadata = {"name": name} if name else {}
    metadata |= {"namespace": NAMESPACE, "creationTimestamp": _timestamp()}
    return {
        "kind": "GameServerAllocation",
        "apiVersion": "allocation.agones.dev/v1",
        "metadata": metadata,
        "status": status,
    }


def _unmet(server: Object, condition: str, wanted: str, current: str) -> str:
    return (
        f'Operation cannot be fulfilled on GameServer.agones.dev "{server["metadata"]["name"]}": the {condition} in the '
        f"precondition ({wanted}) does not match the {condition} in record ({current}). The object might have been "
        f"{'deleted and then recreated' if condition == 'UID' else 'modified'}"
    )


def _not_found(call: Call) -> Reply:
    return Reply(404, status_object(404, "NotFound", f'{call.kind}.{call.group} "{call.name}" not found'))


def _matches(selector: Object, labels: Object) -> bool:
    """True if a selector of an allocation matches labels."""
    absent = {one["key"] for one in selector.get("matchExpressions", ()) if one["operator"] == "DoesNotExist"}
    return selector["matchLabels"].items() <= labels.items() and absent.isdisjoint(labels)


def _is_selected(server: Object, call: Call) -> bool:
    wanted = dict(one.split("=", 1) for one in call.query.get("labelSelector", "").split(",") if one)
    return bool(wanted.items() <= server["metadata"]["labels"].items())


def _timestamp(*, is_exact: bool = False) -> str:
    seconds, nanoseconds = divmod(time.time_ns(), 10**9)
    text = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds))
    return f"{text}.{nanoseconds:09d}".rstrip("0").rstrip(".") + "Z" if is_exact else f"{text}Z"
