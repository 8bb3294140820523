"""HTTP: what callers and game servers can ask, and what they are answered."""

from matchpod.web.application import create_web
from matchpod.web.services import Limits, Services

__all__ = ["Limits", "Services", "create_web"]
