"""Check readiness and disk space, delete old data, and show operators the state of the installation."""
