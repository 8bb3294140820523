"""All SQL: one function a query, portable to SQLite and PostgreSQL."""
