"""Build what callers and people see of matches: servers, lists, the wall, history, callbacks."""
