"""Stream the events of maps and of organizations."""
