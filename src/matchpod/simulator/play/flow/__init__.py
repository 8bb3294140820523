"""The flow: how a map goes from its load to its end."""
