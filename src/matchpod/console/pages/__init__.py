"""Handle the requests for pages, with one module per menu entry. Handlers read from services and render templates."""
