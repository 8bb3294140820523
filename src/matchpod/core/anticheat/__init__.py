"""Anti-cheat: leads for human review, found in the events of a match. Nobody is kicked or banned by them."""
