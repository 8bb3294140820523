"""The log of a match: what its server sent, and the fold over it."""
