"""Read the installation file of Agones, and change it for programs that run on this machine instead of in pods.

Accounts, rights, resource definitions, the allocation API and the webhooks are kept. As there are no pods, API and
webhooks are reached at the loopback address, and Kubernetes trusts the certificate authority of this machine for them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from scripts.control_plane_files import HOST, NAMESPACE

Object = dict[str, Any]

SYSTEM = "agones-system"
"""Kubernetes namespace of Agones."""
SERVICE = "agones-controller-service"
WEBHOOK_PORT = 8081

_RBAC = "/apis/rbac.authorization.k8s.io/v1"
_WEBHOOKS = "/apis/admissionregistration.k8s.io/v1"
PATHS = {
    "Namespace": "/api/v1/namespaces",
    "ServiceAccount": "/api/v1/namespaces/{namespace}/serviceaccounts",
    "Service": "/api/v1/namespaces/{namespace}/services",
    "ClusterRole": f"{_RBAC}/clusterroles",
    "ClusterRoleBinding": f"{_RBAC}/clusterrolebindings",
    "Role": _RBAC + "/namespaces/{namespace}/roles",
    "RoleBinding": _RBAC + "/namespaces/{namespace}/rolebindings",
    "CustomResourceDefinition": "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
    "APIService": "/apis/apiregistration.k8s.io/v1/apiservices",
    "MutatingWebhookConfiguration": f"{_WEBHOOKS}/mutatingwebhookconfigurations",
    "ValidatingWebhookConfiguration": f"{_WEBHOOKS}/validatingwebhookconfigurations",
}
"""Kinds of the objects to create, in the order of their creation, with their API paths."""

_ROLE = Path(__file__).resolve().parents[1] / "deploy" / "examples" / "rbac.yaml"
ACCOUNT = "matchpod"
"""Name of the service account, which gets only the rights that the service needs."""


def path_of(item: Object) -> str:
    """Return the API path at which an object is created."""
    return PATHS[item["kind"]].format(namespace=item["metadata"].get("namespace", NAMESPACE))


def agones_objects(manifest: Path, authority: Path) -> list[Object]:
    """Return those objects of the installation file that are needed, in the order of their creation."""
    bundle = msgspec.json.decode(msgspec.json.encode(authority.read_bytes()))
    objects: list[Object] = [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SYSTEM}}]
    for item in _documents(manifest):
        if item["kind"] in PATHS and (item["kind"] != "Service" or item["metadata"]["name"] == SERVICE):
            objects.append(_changed(item, bundle))
    return sorted(objects, key=lambda item: list(PATHS).index(item["kind"]))


def _changed(item: Object, bundle: str) -> Object:
    if item["kind"] == "Service":
        item["spec"] = {"type": "ExternalName", "externalName": HOST}
    for spec in _callers(item):
        spec["caBundle"] = bundle
        spec["service"]["port"] = WEBHOOK_PORT
    return item


def _callers(item: Object) -> Iterator[Object]:
    """Yield the parts of an object that define how the Kubernetes API calls Agones."""
    if item["kind"] == "APIService":
        yield item["spec"]
    for webhook in item.get("webhooks", ()):
        yield webhook["clientConfig"]


def role_rules() -> list[Object]:
    """Return the rights of the service, from the role in deploy/examples."""
    (role,) = [item for item in _documents(_ROLE) if item["kind"] == "Role"]
    rules: list[Object] = role["rules"]
    return rules


def account_objects() -> list[Object]:
    """Return the objects that create the service account with its rights in the namespace of the game servers."""
    about = {"metadata": {"name": ACCOUNT, "namespace": NAMESPACE}}
    rbac = "rbac.authorization.k8s.io"
    return [
        {"apiVersion": "v1", "kind": "ServiceAccount", **about},
        {"apiVersion": f"{rbac}/v1", "kind": "Role", **about, "rules": role_rules()},
        {
            "apiVersion": f"{rbac}/v1",
            "kind": "RoleBinding",
            **about,
            "subjects": [{"kind": "ServiceAccount", "name": ACCOUNT, "namespace": NAMESPACE}],
            "roleRef": {"apiGroup": rbac, "kind": "Role", "name": ACCOUNT},
        },
    ]


def _documents(file: Path) -> Iterator[Object]:
    for document in re.split(r"^---.*$", file.read_text(encoding="utf-8"), flags=re.MULTILINE):
        item = msgspec.yaml.decode(document.encode()) if document.strip() else None
        if item:
            yield item
