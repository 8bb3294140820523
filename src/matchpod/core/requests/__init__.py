"""Validate what callers send: request bodies, query strings, texts and dates."""
