"""Trials and their provenance, kept in SQLite."""
