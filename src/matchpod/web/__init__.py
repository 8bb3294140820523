"""The HTTP interface for callers, game servers and operators."""

from matchpod.web.application import create_web
from matchpod.web.services import Limits, Services

__all__ = ["Limits", "Services", "create_web"]
