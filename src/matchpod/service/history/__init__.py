"""What do matches leave behind? Their series and maps: written as they are played, and read by callers."""
