"""The rules of a match as pure code: when it starts and ends, and how its statistics are computed. No I/O, no clock."""
