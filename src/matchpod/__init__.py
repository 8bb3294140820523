"""A fresh Counter-Strike 2 server for every match, and its full result in one callback."""
