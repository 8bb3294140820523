"""The console: pages for people, rendered here, next to the API. See `routes` for all of them."""
