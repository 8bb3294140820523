"""Read what callers send: bodies, queries, texts, dates."""
