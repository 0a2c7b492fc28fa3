"""Trials and their provenance, kept in SQLite or, by URL, in PostgreSQL."""
