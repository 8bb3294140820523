"""Read values that other versions have stored."""
