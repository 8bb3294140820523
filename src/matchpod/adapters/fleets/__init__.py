"""Where game servers come from."""
