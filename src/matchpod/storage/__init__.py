"""All SQL: one function per query, portable to SQLite and PostgreSQL."""
