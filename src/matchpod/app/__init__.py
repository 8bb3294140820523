"""THE COMPOSITION ROOT: settings become adapters, adapters become services, and they are run, watched and stopped.

Only the ground is offered here: commands that need no more start without the weight of the rest.
"""

from matchpod.app.ground import Ground, GroundError, check_key, open_ground

__all__ = ["Ground", "GroundError", "check_key", "open_ground"]
