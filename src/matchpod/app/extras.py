"""Find extras of the package that the settings need, but that are not installed."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec

from matchpod.settings import AgonesFleetSettings, Settings


def missing_extras(settings: Settings) -> list[str]:
    """Return a sentence per missing extra: which feature needs it, and where to find the commands to install it."""
    return [
        f"{what} needs the extra 'matchpod[{extra}]', which is not installed; docs/one-box.md has the commands."
        for what, extra, modules in _needed(settings)
        if any(find_spec(module) is None for module in modules)
    ]


def _needed(settings: Settings) -> Iterator[tuple[str, str, tuple[str, ...]]]:
    """Yield each used feature that needs an extra, with the name of the extra and the modules that it installs."""
    if settings.database_url is not None:
        yield "The PostgreSQL database", "postgres", ("asyncpg",)
    if settings.demo_storage_url.startswith("s3:"):
        yield "The storage of demos", "s3", ("botocore",)
    for region in settings.regions:
        if isinstance(region.fleet, AgonesFleetSettings):
            yield f"The Agones fleet of region {region.code}", "agones", ("httpx", "yaml")
