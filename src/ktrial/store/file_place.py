"""Where a store's large parts lie: named once, in the store itself, so that whoever opens it finds them."""

import secrets
from collections.abc import Iterable
from typing import NamedTuple

from sqlalchemy import Connection, delete, func, insert, select, update

from ktrial.store.existing_tables import has
from ktrial.store.schema import file_place, part_files

ABOVE = 8192
"""Bytes of the largest part that stays inside, unless told otherwise: a page of PostgreSQL's. What is smaller
is read sooner from a database than from a file; what is larger is most of what lets it grow (of the profiles
of five workloads, 1, 3, 4, 13 and 27 KB: five sixths)."""


class FilePlace(NamedTuple):
    """A place of files."""

    url: str
    """As fsspec reads it; `./NAME`: beside SQLite's file."""
    directory: str
    """There, of this store alone."""
    above: int
    """Bytes: larger parts go there."""
    collections: int
    """How often files were taken away that nothing names: see `check`."""


class Outside(NamedTuple):
    """How much lies in files."""

    parts: int
    files: int
    """Fewer than parts, where several are the same."""
    size: int
    """Bytes of all files."""


class PlaceChanged(Exception):
    """The place is not what it was, or files were taken away there meanwhile."""


class PlaceInUse(Exception):
    """Parts lie there."""


def read(connection: Connection, *, shared: bool = False) -> FilePlace | None:
    """None: everything is inside. `shared`: it stays so until the transaction ends."""
    if not has(connection, file_place):
        return None
    query = select(*(file_place.c[name] for name in FilePlace._fields))
    row = connection.execute(query.with_for_update(read=True) if shared else query).first()
    return FilePlace(*row) if row else None


def check(connection: Connection, used: FilePlace) -> None:
    """Raises PlaceChanged where files that were written to `used` may not be there any more.

    Files are written before the rows that name them. Who takes files away does it in a transaction that
    changes the place's row: one that names files waits for it, and sees that.
    """
    if read(connection, shared=True) != used:
        raise PlaceChanged


def name(connection: Connection, url: str, above: int) -> FilePlace:
    """Have this place from now on. Its directory stays while something lies there."""
    before = read(connection)
    place = FilePlace(url, f"ktrial-store-{secrets.token_hex(8)}", above, 0)
    if before is None:
        connection.execute(insert(file_place).values(id=1, **place._asdict()))
        return place
    if before.url == url or outside(connection).parts:
        place = place._replace(directory=before.directory, collections=before.collections + 1)
    connection.execute(update(file_place).values(**place._asdict()))
    return place


def forget(connection: Connection) -> None:
    """Have none from now on. Raises PlaceInUse where something lies there."""
    connection.execute(delete(file_place))
    if outside(connection).parts:
        raise PlaceInUse


def count_collection(connection: Connection) -> None:
    """Have `check` wait until this transaction ends, and then find the place changed."""
    connection.execute(update(file_place).values(collections=file_place.c.collections + 1))


def outside(connection: Connection) -> Outside:
    """How much lies in files."""
    if not has(connection, part_files):
        return Outside(0, 0, 0)
    each = select(part_files.c.digest, func.max(part_files.c.size).label("size"))
    files = each.group_by(part_files.c.digest).subquery()
    parts = connection.scalar(select(func.count()).select_from(part_files)) or 0
    count, size = connection.execute(select(func.count(), func.sum(files.c.size)).select_from(files)).one()
    return Outside(int(parts), int(count), int(size or 0))


def named(connection: Connection, among: Iterable[str] | None = None) -> set[str]:
    """The digests of files that parts name: all, or those of these."""
    query = select(part_files.c.digest).distinct()
    return set(
        connection.scalars(query if among is None else query.where(part_files.c.digest.in_(list(among))))
    )
