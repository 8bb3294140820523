"""Rules about servers: when one is lost, which are orphaned, who gets the next."""
