"""Build the components that send events to webhooks.

They share only the database and the rules for receiver addresses with callbacks.
"""

from __future__ import annotations

from importlib.metadata import version as installed_version

import msgspec

from matchpod.app.resources import Resources
from matchpod.ports import CallbackSender
from matchpod.service.access.audit import Audit
from matchpod.service.callbacks.private_callbacks import PrivateCallbacks
from matchpod.service.match_log.remote import RemoteMatches
from matchpod.service.reading.history import History
from matchpod.service.runner.deps import Deps
from matchpod.service.webhooks.attention_watch import AttentionWatch
from matchpod.service.webhooks.bodies import Bodies
from matchpod.service.webhooks.dispatcher import WebhookDispatcher
from matchpod.service.webhooks.feed import EventFeed
from matchpod.service.webhooks.management import Webhooks


class WebhookParts(msgspec.Struct, frozen=True, kw_only=True):
    """The components that create deliveries, send them, and manage webhooks for callers."""

    dispatcher: WebhookDispatcher
    sender: CallbackSender
    feed: EventFeed
    attention: AttentionWatch
    management: Webhooks
    history: History
    """Reads series and maps, for the bodies of events and for callers."""


def compose_webhooks(
    resources: Resources,
    deps: Deps,
    private_callbacks: PrivateCallbacks,
    *,
    sender: CallbackSender,
    remote: RemoteMatches,
    owner: str,
) -> WebhookParts:
    """Build the webhook components. Callbacks need another sender: webhooks could delay their host lookups."""
    db, clock, vault, metrics = resources.db, resources.clock, resources.vault, deps.metrics
    dispatcher = WebhookDispatcher(
        db=db,
        clock=clock,
        vault=vault,
        sender=sender,
        private_callbacks=private_callbacks,
        metrics=metrics,
        owner=owner,
        version=installed_version("matchpod"),
    )
    history = History(db=db, live=deps.live, remote=remote)
    bodies = Bodies(db=db, history=history)
    wake = deps.streams.organizations.wake
    return WebhookParts(
        history=history,
        dispatcher=dispatcher,
        sender=sender,
        feed=EventFeed(db=db, clock=clock, bodies=bodies, metrics=metrics, owner=owner, wake=dispatcher.wake),
        attention=AttentionWatch(db=db, clock=clock, live=deps.live, regions=deps.regions, metrics=metrics, wake=wake),
        management=Webhooks(
            db=db,
            clock=clock,
            vault=vault,
            audit=Audit(db=db, clock=clock),
            private_callbacks=private_callbacks,
            max_webhooks=resources.settings.max_webhooks,
            wake=dispatcher.wake,
        ),
    )
