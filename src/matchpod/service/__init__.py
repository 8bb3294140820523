"""The use cases: what Matchpod does, over its ports."""
