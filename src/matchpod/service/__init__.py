"""The use cases of Matchpod, implemented against its ports."""
