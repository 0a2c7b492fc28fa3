"""Which store: a path, a database's URL, KTRIAL_STORE, or the user's own."""

import os
from pathlib import Path
from typing import TYPE_CHECKING

import platformdirs

from ktrial.store.errors import NoSuchBackend

if TYPE_CHECKING:
    from sqlalchemy import URL

VARIABLE = "KTRIAL_STORE"


def default_location() -> str:
    """`KTRIAL_STORE` where it is set, else `ktrial.db` in the user's data directory."""
    named = os.environ.get(VARIABLE)
    return named or str(Path(platformdirs.user_data_dir("ktrial")) / "ktrial.db")


def path_of(location: str | Path) -> Path | None:
    """The file that a path names; None where the location is a URL."""
    text = str(location)
    return None if "://" in text else Path(text).expanduser().absolute()


def url_of(location: str | Path) -> "URL":
    """The database's URL: a path means SQLite. Raises NoSuchBackend where a URL cannot be understood."""
    from sqlalchemy import URL, make_url
    from sqlalchemy.exc import ArgumentError

    if path := path_of(location):
        return URL.create("sqlite", database=str(path))
    text = str(location)
    try:
        url = make_url(text)
    except (ArgumentError, ValueError) as error:
        raise NoSuchBackend(store=text, problem="the URL cannot be understood") from error
    if url.get_backend_name() == "sqlite" and url.database in {None, "", ":memory:"}:
        raise NoSuchBackend(store=text, problem="a store in memory would lose every trial")
    return url


def file_of(url: "URL") -> Path | None:
    """SQLite's file; None where the store is on a server."""
    is_file = url.get_backend_name() == "sqlite" and url.database
    return Path(str(url.database)).absolute() if is_file else None


def shown(url: "URL") -> str:
    """The store's name for messages: the path, or the URL without its password."""
    file = file_of(url)
    return str(file) if file else url.render_as_string(hide_password=True)
