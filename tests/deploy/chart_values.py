"""Values of the chart for installations that differ in one thing each; those in `ci` of the chart are complete ones."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_POSTGRES = {
    "database": {"kind": "postgresql", "existingSecret": "database"},
    "secretKey": {"existingSecret": "key"},
}
_INGRESS = {"enabled": True, "host": "cs.example.net", "tlsSecret": "tls"}
_TRY = {"code": "try", "kind": "agones", "secret": "fleet"}
_LAN = {"code": "lan", "kind": "static", "servers": [{"address": "198.51.100.4:27015", "rcon_password": "p"}]}
_POLICY = {
    "enabled": True,
    "apiServers": [{"cidr": "192.0.2.1/32", "port": 6443}],
    "postgresql": [{"ipBlock": {"cidr": "192.0.2.10/32"}}],
    "rcon": [{"cidr": "198.51.100.0/24", "port": 27015, "endPort": 27030}],
}

VALUES: Mapping[str, dict[str, Any]] = {
    "defaults": {},
    "postgresql": {**_POSTGRES, "replicaCount": 3},
    "stopped": {"replicaCount": 0},
    "restored": {"replicaCount": 0, "backup": {"enabled": True}, "restore": {"file": "latest"}},
    "restored-postgresql": {
        **_POSTGRES,
        "replicaCount": 0,
        "backup": {"enabled": True, "existingClaim": "backups"},
        "restore": {"file": "matchpod-backup-1.dump", "originalIsGone": True},
    },
    "plain-ingress": {"ingress": {"enabled": True, "host": "cs.example.net", "annotations": {"a.example/b": "c"}}},
    "traefik": {
        "ingress": {**_INGRESS, "controller": "traefik", "ingest": {"sourceRanges": ["192.0.2.0/24", "2001:db8::/32"]}}
    },
    "no-ingest": {"ingress": {**_INGRESS, "controller": "nginx", "paths": ["/api", "/openapi.json"]}},
    "load-balancer": {
        "service": {"type": "LoadBalancer"},
        "serviceMonitor": {"enabled": True},
        "prometheusRule": {"enabled": True},
    },
    "node-port": {"service": {"type": "NodePort", "port": 80}, "publicUrl": "https://cs.example.net"},
    "settings-file": {"settingsFile": {"existingSecret": "settings"}, "publicUrl": "https://cs.example.net"},
    "process": {"regions": [{"code": "box", "kind": "process", "options": {"ports": "27100-27109"}}]},
    "inside-and-elsewhere": {
        "ingress": _INGRESS,
        "regions": [
            _TRY,
            {**_TRY, "code": "us", "kubeconfigSecret": "us"},
            {**_TRY, "code": "asia", "kubeconfigSecret": "asia", "log_url": "https://asia.example.net"},
            _LAN,
        ],
    },
    "elsewhere": {"regions": [{**_LAN, "log_url": "http://203.0.113.7:8080"}], "service": {"type": "LoadBalancer"}},
    "policies-sqlite": {"networkPolicy": _POLICY, "backup": {"enabled": True}},
    "policies": {
        **_POSTGRES,
        "publicUrl": "https://cs.example.net",
        "networkPolicy": {
            **_POLICY,
            "dnsPeers": [{"podSelector": {}}],
            "dnsPorts": [1053],
            "privateNetworks": ["10.0.0.0/8"],
            "extraEgress": [{"to": [{"ipBlock": {"cidr": "10.1.0.0/16"}}]}],
            "gameServerExtraEgress": [{"to": [{"ipBlock": {"cidr": "10.2.0.0/16"}}]}],
        },
        "regions": [_TRY, _LAN],
    },
    "policies-other-cluster": {"fleetsOnly": True, "networkPolicy": _POLICY, "regions": [_TRY]},
    "callback-proxy": {"callbackProxy": {"existingSecret": "proxy"}, "firstKey": {"existingSecret": "first"}},
    "platform-user": {"podSecurityContext": {"runAsUser": None, "runAsGroup": None, "fsGroup": None}},
    "no-autoscaler": {"gameServer": {"autoscaler": {"enabled": False}, "replicas": 4}, "regions": [_TRY]},
    "two-regions-one-fleet": {
        "gameServer": {"create": False},
        "regions": [
            {**_TRY, "code": code, "fleet": "cs", "options": {"selector": {"tier": code}}} for code in ("a", "b")
        ],
    },
    "long-names": {"fullnameOverride": "m" * 50, "regions": [{**_TRY, "code": "c" * 32}]},
    "own-command": {
        "gameServer": {
            "kind": "cs2",
            "image": {"repository": "registry.example.com/cs2"},
            "command": ["start_with_token.sh", "{game}/cs2", "-port", "{port}", "-ip", "{ip}", "+exec", "{cfg}"],
            "extraVolumes": [{"name": "tokens", "hostPath": {"path": "/srv/tokens", "type": "Directory"}}],
            "extraVolumeMounts": [{"name": "tokens", "mountPath": "/tokens"}],
            "extraEnv": [{"name": "A", "value": "b"}],
        },
        "regions": [_TRY],
    },
    "no-rights": {"rbac": {"create": False}, "serviceAccount": {"name": "own"}, "regions": [_TRY]},
    "more-of-everything": {
        **_POSTGRES,
        "replicaCount": 2,
        "migration": {"enabled": False},
        "preStopSeconds": 0,
        "extraEnv": [{"name": "TZ", "value": "UTC"}],
        "extraVolumes": [{"name": "more", "emptyDir": {}}],
        "extraVolumeMounts": [{"name": "more", "mountPath": "/more"}],
        "podLabels": {"a": "b"},
        "podAnnotations": {"a": "b"},
        "priorityClassName": "high",
        "topologySpreadConstraints": [
            {"maxSkew": 1, "topologyKey": "kubernetes.io/hostname", "whenUnsatisfiable": "DoNotSchedule"}
        ],
    },
}
