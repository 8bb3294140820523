"""All SQL of the service. Each query is one function, and works on both SQLite and PostgreSQL."""
