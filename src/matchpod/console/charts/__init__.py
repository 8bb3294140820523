"""Draw the charts of a map, as SVG or HTML tables that need no script."""
