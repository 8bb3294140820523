"""Store the log of each match, and fold its entries into the state of the match."""
