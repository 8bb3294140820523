"""The composition root: build adapters and services from the settings, then run and stop them.

This package exports only the resources, so that commands that need nothing else start quickly.
"""

from matchpod.app.resources import Resources, ResourcesError, check_vault_key, open_resources, read_schema_version

__all__ = ["Resources", "ResourcesError", "check_vault_key", "open_resources", "read_schema_version"]
