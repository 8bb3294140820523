"""Show the state, statistics and alerts of regions, switch regions on and off, and track silent servers."""
