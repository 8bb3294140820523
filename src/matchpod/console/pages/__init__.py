"""The pages, one module per entry of the menu: read from the services, return a rendered template."""
