"""Convert server log lines to typed values and back; `reader` is the entry point."""
