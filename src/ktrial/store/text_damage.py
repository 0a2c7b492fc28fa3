"""Text in a row that is no UTF-8 any more: one bit is enough, and SQLite then gives the whole row no name."""

from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy.exc import DBAPIError

from ktrial.store.sqlite import NO_UTF8


@contextmanager
def undecodable_text() -> Iterator[None]:
    """Raise UnicodeError for it, as for any other value that is none of its kind."""
    try:
        yield
    except DBAPIError as error:
        if NO_UTF8 in str(error.orig):
            raise UnicodeError(str(error.orig)) from error
        raise
