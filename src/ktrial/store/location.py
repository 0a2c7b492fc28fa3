"""Which store: a path, a database's URL, KTRIAL_STORE, or the user's own."""

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

import platformdirs

from ktrial.store.errors import NoSuchBackend

if TYPE_CHECKING:
    from sqlalchemy import URL

VARIABLE = "KTRIAL_STORE"
_POSTGRESQL = ("postgresql", "postgres")
"""What PostgreSQL's own programs call it in URLs; the driver is psycopg, unless another one is named."""
_SECRETS = (
    re.compile(r"(?<=://)([^\s/?#@:]*):[^\s'\"]*(?=@)"),
    re.compile(r"(?i)\b(password|passfile|sslpassword)=[^\s&'\"]*"),
)


def default_location() -> str:
    """`KTRIAL_STORE` where it is set, else `ktrial.db` in the user's data directory."""
    return os.environ.get(VARIABLE) or str(Path(platformdirs.user_data_dir("ktrial")) / "ktrial.db")


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
    except (ArgumentError, ValueError):  # which says the whole of it, with the password
        raise NoSuchBackend(masked(text), "the URL cannot be understood") from None
    if url.drivername in _POSTGRESQL:
        url = url.set(drivername="postgresql+psycopg")
    if url.get_backend_name() == "sqlite" and url.database in {None, "", ":memory:"}:
        raise NoSuchBackend(text, "a store in memory would lose every trial")
    return url


def file_of(url: "URL") -> Path | None:
    """SQLite's file; None where the store is on a server."""
    is_file = url.get_backend_name() == "sqlite" and url.database
    return Path(str(url.database)).absolute() if is_file else None


def shown(url: "URL") -> str:
    """The store's name for messages: the path, or the URL without its password and its driver."""
    file = file_of(url)
    text = str(file) if file else masked(url.render_as_string(hide_password=True))
    return text.replace("postgresql+psycopg://", "postgresql://", 1)


def masked(text: str) -> str:
    """`text` with `***` in place of the passwords of all URLs in it."""
    for_user, in_query = _SECRETS
    return in_query.sub(r"\1=***", for_user.sub(r"\1:***", text))


def postgresql_uri(location: str | Path) -> str | None:
    """The URL as PostgreSQL's own programs and psycopg take it; None where the store is not there."""
    scheme, parted, address = str(location).partition("://")
    return f"postgresql://{address}" if parted and scheme in {*_POSTGRESQL, "postgresql+psycopg"} else None


def shown_uri(uri: str) -> str:
    """A PostgreSQL URL's name for messages: as `shown`, without SQLAlchemy."""
    path, parted, query = masked(uri).partition("?")
    return path + parted + query.replace("/", "%2F") if parted else path
