"""One line of a server log ↔ one typed value. Values in `*_lines`, reading in `*_grammar`, the way in is `reader`."""
