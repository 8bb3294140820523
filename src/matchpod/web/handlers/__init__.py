"""The handlers of endpoints. A handler reads a request, calls a use case and returns the response."""
