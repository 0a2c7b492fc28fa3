"""Large parts of trials (profiles, what monitors read over time) in files, which their rows name by digest.

Such a row's content is empty, and another row tells digest and size. A file is written before its row: what
is killed in between leaves a file that nothing names. The digest is that of the content, and the one that the
trial's digests have: they are the same, wherever a part lies.
"""

import hashlib
import secrets
import socket
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from sqlalchemy import Connection, delete, func, insert, select, update

from ktrial.fault_points import fault_point
from ktrial.file_store import FileStore, FileStoreFailed
from ktrial.store import postgresql
from ktrial.store.errors import StoreError
from ktrial.store.schema import file_place, part_files
from ktrial.store.transactions import Transactions

OWNER = "owner"
"""The word beside the files that says whose they are."""


LOST = "lost"
"""What `fill` adds to a row of which the file is not to be had: why."""


Result = TypeVar("Result")
FilledRow = Mapping[Any, Any]
Fill = Callable[[Connection, str, Sequence[FilledRow]], list[FilledRow]]
"""`PartFiles.fill`: a table's rows, with what lies in files in place."""


class Placed(NamedTuple):
    """What lies in files of the content that is about to be stored."""

    digests: frozenset[str] = frozenset()


class FilePlace(NamedTuple):
    """A place of files."""

    url: str
    """As fsspec reads it; `./NAME`: beside SQLite's file."""
    directory: str
    """There, of this store alone."""
    above: int
    """Bytes: larger parts go there."""
    collections: int
    """How often files were taken away that nothing names: see `check_place`."""


class PartFiles:
    """The files of one open store. May be used from several threads."""

    def __init__(self, transactions: Transactions) -> None:
        self._transactions = transactions
        self._place_read: tuple[FilePlace | None] | None = None
        self._opened: dict[tuple[str, str], FileStore] = {}
        self._own_directories: set[str] = set()
        """Directories that are this store's, as their owner's word says."""

    def stored(self, contents: Iterable[bytes], work: Callable[[Connection, Placed], Result]) -> Result:
        """Write those of the contents to files that are large, then what `work` writes, in one transaction.

        Raises StoreError where the files are another store's or cannot be reached, and what `work` raises.
        """
        place = self._place()
        if place is None:
            return self._transactions.write(lambda connection: work(connection, Placed()))
        listed = list(contents)
        while place is not None:
            try:
                return self._stored_with(place, listed, work)
            except PlaceChanged:
                place = self._place(anew=True)
        return self._transactions.write(lambda connection: work(connection, Placed()))

    def _stored_with(
        self, place: FilePlace, contents: list[bytes], work: Callable[[Connection, Placed], Result]
    ) -> Result:
        placed = Placed(frozenset(self._put(place, contents)))

        def checked(connection: Connection) -> Result:
            if placed.digests:
                check_place(connection, place)
            return work(connection, placed)

        return self._transactions.write(checked)

    def _put(self, place: FilePlace, contents: list[bytes]) -> Iterator[str]:
        large = [content for content in contents if len(content) > place.above]
        if large:
            self.check_own(place)
        for content in large:
            digest = hashlib.sha256(content).hexdigest()
            with self.telling(place):
                self.open(place).put(digest, content, anew=True)
            fault_point("store: file of a part written")
            yield digest

    def fill(self, connection: Connection, table: str, rows: Sequence[FilledRow]) -> list[FilledRow]:
        """Rows of `profiles` or `series`, with what lies in files in place.

        LOST in a row says why its file is not to be had. Raises StoreError.
        """
        empty = [row["trial_id"] for row in rows if not row["content"]]
        if not empty:
            return list(rows)
        place = read_place(connection)
        columns = (part_files.c.trial_id, part_files.c.workload, part_files.c.digest)
        query = select(*columns).where(part_files.c.part == table, part_files.c.trial_id.in_(empty))
        named = {(trial, workload): digest for trial, workload, digest in connection.execute(query)}
        return [
            self._filled(place, row, named.get((row["trial_id"], row["workload"])))
            if not row["content"]
            else row
            for row in rows
        ]

    def _filled(self, place: FilePlace | None, row: FilledRow, digest: str | None) -> FilledRow:
        if digest is None or place is None:
            return row
        with self.telling(place):
            content = self.open(place).read(digest)
        if content is not None and hashlib.sha256(content).hexdigest() == digest:
            return {**row, "content": content}
        problem = "is not there" if content is None else "is damaged"
        return {**row, LOST: f"its file {digest} in {self.shown(place)} {problem}"}

    def open(self, place: FilePlace) -> FileStore:
        """The files there. Raises StoreError."""
        key = (place.url, place.directory)
        if key not in self._opened:
            with self.telling(place):
                self._opened[key] = FileStore(self.url(place.url), place.directory)
        return self._opened[key]

    def url(self, url: str) -> str:
        """What `./NAME` means."""
        file = self._transactions.file
        return str(file.parent / url) if file and url.startswith("./") else url

    def shown(self, place: FilePlace) -> str:
        """The place, for messages."""
        return f"{self.url(place.url).rstrip('/')}/{place.directory}"

    def check_own(self, place: FilePlace) -> None:
        """Raises StoreError where another store says that the files are its own."""
        if place.directory in self._own_directories:
            return
        if self._is_free(place, place):
            with self.telling(place):
                self.open(place).note(OWNER, self._name_for(place.url))
        self._own_directories.add(place.directory)

    def adopt(self, place: FilePlace, before: FilePlace | None, *, take_over: bool) -> None:
        """Say there that the files are this store's; `take_over`: whoever's they were.

        `before`: the same files under another name. Raises StoreError, as `check_own`.
        """
        if not take_over:
            self._is_free(place, before or place)
        with self.telling(place):
            self.open(place).note(OWNER, self._name_for(place.url))

    def _is_free(self, place: FilePlace, before: FilePlace) -> bool:
        """Whether nobody has said that the files are its own. Raises StoreError, where another did."""
        with self.telling(place):
            owner = self.open(place).noted(OWNER)
        if owner not in {None, self._name_for(place.url), self._name_for(before.url)}:
            # Each would take away what only the other names: nothing was written there.
            raise StoreError(
                f"Store {self._transactions.name}: the files of its large parts, {self.shown(place)}, "
                f"belong to {owner}: "
                "one is a copy of the other.",
                hint="if there is no other store any more, ktrial store files --take-over; else ktrial "
                "store copy "
                "makes a copy that has its own",
            )
        return owner is None

    def _name_for(self, url: str) -> str:
        """What tells this store from its copies."""
        file = self._transactions.file
        if file is None:
            return self._transactions.read(postgresql.identity)
        return file.name if url.startswith("./") else f"{socket.gethostname()}:{file}"

    def _place(self, *, anew: bool = False) -> FilePlace | None:
        if self._place_read is None or anew:
            self._place_read = (self._transactions.read(read_place),)
        return self._place_read[0]

    @contextmanager
    def telling(self, place: FilePlace) -> Iterator[None]:
        """Raises StoreError where what is done fails there."""
        try:
            yield
        except FileStoreFailed as error:
            raise StoreError(
                f"Store {self._transactions.name}: the files of its large parts, {self.shown(place)}, "
                f"cannot be used: {error.problem}",
                hint=f"{error.advice} Trials stored before are safe: then run the same command again. "
                "`ktrial store files` says where they are, and names another place after a move",
            ) from None


def rows_to_insert(
    connection: Connection, part: str, rows: Sequence[FilledRow], placed: Placed
) -> list[dict[str, Any]]:
    """The rows as they are inserted: empty, where the content lies in a file, which is then named."""
    inside, files = [], []
    for row in rows:
        plain = {name: value for name, value in row.items() if name != LOST}
        digest = hashlib.sha256(plain["content"]).hexdigest() if placed.digests else ""
        if digest in placed.digests:
            whose = {name: plain[name] for name in ("trial_id", "workload")}
            files.append({**whose, "part": part, "digest": digest, "size": len(plain["content"])})
            plain["content"] = b""
        inside.append(plain)
    if files:
        connection.execute(insert(part_files), files)
        fault_point("store: files of parts named")
    return inside


def location_for(text: str, file: Path | None) -> str:
    """What the store keeps of a place that somebody names: `./NAME` for a directory beside SQLite's file."""
    if "://" in text:
        return text
    path = Path(text).expanduser().absolute()
    if file is not None and path.is_relative_to(file.parent):
        return f"./{path.relative_to(file.parent)}"
    return str(path)


# Where a store's large parts lie: named once, in the store itself, so that whoever opens it finds them.

ABOVE = 8192
"""Bytes of the largest part that stays inside, unless told otherwise: a page of PostgreSQL's. What is smaller
is read sooner from a database than from a file; what is larger is most of what lets it grow (of the profiles
of five workloads, 1, 3, 4, 13 and 27 KB: five sixths)."""


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


def read_place(connection: Connection, *, shared: bool = False) -> FilePlace | None:
    """None: everything is inside. `shared`: it stays so until the transaction ends."""
    query = select(*(file_place.c[name] for name in FilePlace._fields))
    row = connection.execute(query.with_for_update(read=True) if shared else query).first()
    return FilePlace(*row) if row else None


def check_place(connection: Connection, used: FilePlace) -> None:
    """Raises PlaceChanged where files that were written to `used` may not be there any more.

    Files are written before the rows that name them. Who takes files away does it in a transaction that
    changes the place's row: one that names files waits for it, and sees that.
    """
    if read_place(connection, shared=True) != used:
        raise PlaceChanged


def name_place(connection: Connection, url: str, above: int) -> FilePlace:
    """Have this place from now on. Its directory stays while something lies there."""
    before = read_place(connection)
    place = FilePlace(url, f"ktrial-store-{secrets.token_hex(8)}", above, 0)
    if before is None:
        connection.execute(insert(file_place).values(id=1, **place._asdict()))
        return place
    if before.url == url or parts_outside(connection).parts:
        place = place._replace(directory=before.directory, collections=before.collections + 1)
    connection.execute(update(file_place).values(**place._asdict()))
    return place


def forget_place(connection: Connection) -> None:
    """Have none from now on. Raises PlaceInUse where something lies there."""
    connection.execute(delete(file_place))
    if parts_outside(connection).parts:
        raise PlaceInUse


def count_collection(connection: Connection) -> None:
    """Have `check_place` wait until this transaction ends, and then find the place changed."""
    connection.execute(update(file_place).values(collections=file_place.c.collections + 1))


def parts_outside(connection: Connection) -> Outside:
    """How much lies in files."""
    sizes = select(part_files.c.digest, func.max(part_files.c.size).label("size"))
    files = sizes.group_by(part_files.c.digest).subquery()
    parts = connection.scalar(select(func.count()).select_from(part_files)) or 0
    count, size = connection.execute(select(func.count(), func.sum(files.c.size)).select_from(files)).one()
    return Outside(int(parts), int(count), int(size or 0))


def named_files(connection: Connection, among: Iterable[str] | None = None) -> set[str]:
    """The digests of files that parts name: all, or those of these."""
    query = select(part_files.c.digest).distinct()
    return set(
        connection.scalars(query if among is None else query.where(part_files.c.digest.in_(list(among))))
    )
