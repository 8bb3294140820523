"""THE RULES, pure: what a match is, when it starts and ends, what its numbers mean. No I/O, no clock."""
