"""Define principals, and generate identifiers."""
