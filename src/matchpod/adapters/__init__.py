"""The outside world: each file keeps the promise of one port."""
