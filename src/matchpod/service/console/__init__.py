"""What only the console shows: the wall, a match as a whole, overlays, acknowledgements."""
