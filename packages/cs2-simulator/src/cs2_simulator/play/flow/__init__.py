"""The flow of a map, from its load to its end."""
