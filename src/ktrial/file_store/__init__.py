"""Files by the digest of their content, where fsspec reaches: a fleet's, or large parts of a store's."""

from ktrial.file_store.by_digest import FileStore, checked

__all__ = ["FileStore", "checked"]
