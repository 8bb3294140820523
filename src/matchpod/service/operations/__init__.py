"""What operators need: readiness, retention, the installation as a whole."""
