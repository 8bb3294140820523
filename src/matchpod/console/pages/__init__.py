"""Handle the requests for pages, one module per menu entry. Handlers read from services, and render templates."""
