"""The OpenAPI description of the API, and the documentation pages for it."""
