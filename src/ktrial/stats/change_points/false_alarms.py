"""How often a line that never changed may be said to have changed."""

ALPHA = 0.05
"""The chance that a series without any change shows one."""
