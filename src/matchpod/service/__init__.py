"""Implement the use cases of Matchpod, with the outside world behind the interfaces in `ports.py`."""
