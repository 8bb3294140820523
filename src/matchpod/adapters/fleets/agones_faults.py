"""Convert errors of Kubernetes calls to sentences for operators."""

from __future__ import annotations

import msgspec

from matchpod.adapters.kubernetes import api_errors
from matchpod.ports import FleetUnavailableError


class Right(msgspec.Struct, frozen=True):
    """A right in the namespace of the game servers."""

    verb: str
    group: str
    resource: str

    def __str__(self) -> str:
        """Return the right as an operator would write it in a Kubernetes role."""
        return f"{self.verb} {self.resource}.{self.group}"


ALLOCATE = Right("create", "allocation.agones.dev", "gameserverallocations")
READ_SERVER = Right("get", "agones.dev", "gameservers")
LIST_SERVERS = Right("list", "agones.dev", "gameservers")
WATCH_SERVERS = Right("watch", "agones.dev", "gameservers")
DELETE_SERVER = Right("delete", "agones.dev", "gameservers")
READ_FLEET = Right("get", "agones.dev", "fleets")

RIGHTS = (ALLOCATE, READ_SERVER, LIST_SERVERS, WATCH_SERVERS, DELETE_SERVER, READ_FLEET)
"""All rights that the service needs in the namespace of a fleet."""


def sentence_of(error: api_errors.KubernetesError, right: Right) -> str:
    """Return the sentence for an error of a call that needed this right."""
    match error:
        case api_errors.ApiForbiddenError():
            return f"The account of the service lacks the right to {right}: {error}."
        case api_errors.ApiUnauthorizedError():
            return f"The cluster rejected the credentials of the service: {error}."
        case api_errors.ApiNotFoundError() if error.is_missing_api:
            return f"The cluster does not know {right.group}; is Agones installed there? {error}."
        case api_errors.InvalidError():
            return f"The cluster rejected the selector or labels of the fleet: {error}."
        case api_errors.ClusterConfigError() | api_errors.UnreachableError():
            return f"{error}."
        case _:
            return f"The cluster could not {right}: {error}."


def fleet_sentence(error: api_errors.KubernetesError, fleet: str, namespace: str) -> str:
    """Return the sentence for a Fleet that cannot be read. The API answers 404 for a missing namespace too."""
    if is_missing(error):
        return f"There is no Fleet {fleet} in the namespace {namespace}."
    return sentence_of(error, READ_FLEET)


def is_missing(error: api_errors.KubernetesError) -> bool:
    """True if the API answered that it has no object of this name, but knows this kind of object."""
    return isinstance(error, api_errors.ApiNotFoundError) and not error.is_missing_api


def unavailable(error: api_errors.KubernetesError, right: Right) -> FleetUnavailableError:
    """Convert an error of a call that needed this right to a FleetUnavailableError."""
    return FleetUnavailableError(sentence_of(error, right))
