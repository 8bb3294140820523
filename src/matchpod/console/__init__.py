"""The console: pages for the people of an organization and for operators, served at /console."""
