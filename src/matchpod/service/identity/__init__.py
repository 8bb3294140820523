"""Who asks, and the identifiers that we make."""
