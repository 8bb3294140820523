"""Check the game servers of a region before a match needs them."""
