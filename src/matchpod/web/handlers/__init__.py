"""The handlers of endpoints, which read a request, call a use case and return the response."""
