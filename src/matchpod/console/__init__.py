"""The console: web pages at /console for operators and for the users of organizations."""
