"""Errors about the store that keeps trials."""

from ktrial.errors.base import KtrialError


class StoreError(KtrialError):
    """Store {store}: {problem}"""
