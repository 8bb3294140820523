"""Control the course of a map, from its load to its end."""
