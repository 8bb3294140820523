"""What a match does: its phases, its players, its maps, and what the service does about them."""
