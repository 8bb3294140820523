"""The game: who is on the server, what they do to each other, and who counts it."""
