"""Read matches for the API and the console: servers, lists, the wall, history and callbacks."""
