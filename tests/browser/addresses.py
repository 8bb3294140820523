"""The addresses of the console that are checked and photographed. A new page is added by one line."""

from __future__ import annotations

from typing import Final

PUBLIC: Final = {
    "log-in": "/console/login",
    "log-in-link": "/console/login/none",
    "not-found": "/console/nothing-here",
}
"""Pages for everyone, by name."""

OF_AN_OWNER: Final = {
    "live": "/console",
    "live-cards": "/console?view=cards",
    "live-by-label": "/console?group=event",
    "live-full-screen": "/console?screen=full",
    "match": "/console/matches/{serverId}",
    "match-ended": "/console/matches/{endedId}",
    "matches": "/console/matches",
    "deliveries": "/console/deliveries",
    "webhooks": "/console/webhooks",
    "webhook": "/console/webhooks/{webhookId}",
    "webhook-delivery": "/console/webhooks/{webhookId}/deliveries/{deliveryId}",
    "create": "/console/create",
    "create-many": "/console/create/sheet",
    "regions": "/console/regions",
    "access": "/console/access",
}
"""Pages of an organization, by name; `{serverId}` is an open match, `{endedId}` one that has ended, and `{deliveryId}` a
delivery of the webhook `{webhookId}`."""

OF_AN_OPERATOR: Final = {
    "operator": "/console/operator",
    "regions-of-operator": "/console/regions",
    "access-of-operator": "/console/access",
}
"""Pages for operators, by name."""
