"""Errors of the cluster become one sentence for operators."""

from __future__ import annotations

import pytest

from matchpod.adapters.fleets.agones_faults import ALLOCATE, RIGHTS, sentence_of, unavailable
from matchpod.adapters.kubernetes.api_errors import (
    ClusterConfigError,
    KubernetesError,
    MalformedAnswerError,
    UnreachableError,
    error_of,
)
from matchpod.ports import FleetUnavailableError

STATUS = b'{"kind":"Status","message":"no","reason":"Because"}'
ALLOCATE_TEXT = "create gameserverallocations.allocation.agones.dev"


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (error_of(403, STATUS), f"The account of the service lacks the right to {ALLOCATE_TEXT}: no (HTTP 403)."),
        (error_of(401, STATUS), "The cluster rejected the credentials of the service: no (HTTP 401)."),
        (
            error_of(404, b"404 page not found"),
            "The cluster does not know allocation.agones.dev; is Agones installed there? 404 page not found (HTTP 404).",
        ),
        (error_of(404, STATUS), f"The cluster could not {ALLOCATE_TEXT}: no (HTTP 404)."),
        (error_of(422, STATUS), "The cluster rejected the selector or labels of the fleet: no (HTTP 422)."),
        (error_of(503, b"down"), f"The cluster could not {ALLOCATE_TEXT}: down (HTTP 503)."),
        (UnreachableError("It cannot be reached"), "It cannot be reached."),
        (ClusterConfigError("The kubeconfig is missing"), "The kubeconfig is missing."),
        (MalformedAnswerError("odd"), f"The cluster could not {ALLOCATE_TEXT}: odd."),
    ],
)
def test_error_is_said_in_one_sentence(error: KubernetesError, sentence: str) -> None:
    assert sentence_of(error, ALLOCATE) == sentence
    fault = unavailable(error, ALLOCATE)
    assert isinstance(fault, FleetUnavailableError)
    assert str(fault) == sentence


def test_rights_are_those_of_the_documented_role() -> None:
    assert {str(right) for right in RIGHTS} == {
        ALLOCATE_TEXT,
        "get gameservers.agones.dev",
        "list gameservers.agones.dev",
        "watch gameservers.agones.dev",
        "delete gameservers.agones.dev",
        "get fleets.agones.dev",
    }
