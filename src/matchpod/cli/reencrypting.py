"""Encrypt the stored secrets with another key: `matchpod reencrypt`."""

from __future__ import annotations

import typer

from matchpod.app import Resources
from matchpod.cli.resources import fail, record_act, run_with_resources
from matchpod.service.access.audit import Action
from matchpod.storage import sealed_secrets
from matchpod.storage.sealed_secrets import Resealed


def reencrypt() -> None:
    """Encrypt all stored secrets with the first key in MATCHPOD_SECRET_KEY. The service may be running.

    The other keys are only used to decrypt. Afterwards they can be removed from the setting; docs/secrets.md has all
    steps. This command may be repeated at any time.
    """

    async def work(resources: Resources) -> dict[str, Resealed]:
        done = await sealed_secrets.reseal_all(resources.db, resources.vault.reseal)
        if changed := sum(each.changed for each in done.values()):
            await record_act(resources, Action.SECRETS_REENCRYPTED, detail=f"{changed} secrets")
        return done

    done = run_with_resources(work)
    for table, numbers in done.items():
        typer.echo(f"{table}: {numbers.changed} encrypted again, {numbers.unchanged} had the key before")
    if unreadable := sum(each.unreadable for each in done.values()):
        fail(
            f"{unreadable} secrets cannot be decrypted with any of the keys. Add the key that they were stored with to"
            " MATCHPOD_SECRET_KEY, after a comma, and repeat the command."
        )
