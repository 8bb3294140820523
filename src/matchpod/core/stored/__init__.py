"""Read stored values of other versions."""
