"""Speeds of ktrial, measured beside those of other programs: `make bench`."""
