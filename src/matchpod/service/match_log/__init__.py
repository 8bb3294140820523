"""Store the log of each match, and compute the state of the match from its entries (the fold)."""
