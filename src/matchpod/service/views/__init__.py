"""What the API returns: servers, lists of matches, callbacks, history, endings."""
