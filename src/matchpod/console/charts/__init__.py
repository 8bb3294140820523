"""Draw the charts of a map as SVG or HTML tables, without scripts."""
