"""The description of the API and its documentation pages."""
