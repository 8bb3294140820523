"""The endpoints: read a request, call a use case, write the response."""
