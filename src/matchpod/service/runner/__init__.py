"""Drive one match from its creation to the release of its server: one step per phase, each safe to repeat."""
