"""What people see of matches: servers, lists, the wall, history, callbacks."""
