"""A static site of everything in a store."""
