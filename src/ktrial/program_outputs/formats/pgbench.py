"""pgbench's report (PostgreSQL's src/bin/pgbench)."""

import re
from collections.abc import Iterator

from ktrial.model.workload import Direction
from ktrial.program_outputs import Column, Measured, Note, Report
from ktrial.program_outputs.errors import OutputDamaged, OutputEmpty
from ktrial.program_outputs.lines import LinePatterns
from ktrial.program_outputs.reading import measured, only, the_only

_RATE = Column("transactions", "1/s", Direction.HIGHER)
_LATENCY = Column("latency", "ms", Direction.LOWER)
_WITHOUT_CONNECTING = (
    r"^tps = (\S+) \((?:without initial connection time|excluding connections establishing)\)"
)
_WITH_RECONNECTING = r"^tps = (\S+) \(including reconnection times\)"
"""With --connect there is no other (from PostgreSQL 14 on)."""

_LINES = LinePatterns(
    measurements=(r"tps = \S+ \(.*\)", r"latency (?:average|stddev)(?: =|:) \S+ ms"),
    conditions=(
        r"(?:pgbench )?\(?(?:pgbench )?\(?(?:PostgreSQL\) )?(?P<version>\d+\S*).*\)?",
        r"transaction type: (?P<transaction_type>.+)",
        r"scaling factor: (?P<scale>\d+)",
        r"query mode: (?P<query_mode>\S+)",
        r"partition method: (?P<partition_method>\S+)",
        r"partitions: (?P<partitions>\d+)",
        r"number of clients: (?P<clients>\d+)",
        r"number of threads: (?P<threads>\d+)",
        r"duration: (?P<duration>.+)",
        r"number of transactions per client: (?P<transactions_per_client>\d+)",
        r"maximum number of tries: (?P<tries>\d+)",
        r"rate limit schedule lag: .*|latency limit: (?P<latency_limit>.+)",
    ),
    failures=(r"Run was aborted.*",),
    decoration=(
        r"number of (?:transactions|failed|skipped|serialization|deadlock|retried|other|total) ?.*",
        r"total number of retries: .*|number of transactions above .*|initial connection time = \S+ ms",
        r"average connection time = \S+ ms|starting vacuum\.\.\.end\.|progress: .*|pgbench: .*",
        r"SQL script \d+: .*| - .*|statement latencies .*| +\d+\.\d+ +\d* *\S.*|latency .*limit.*",
    ),
)


class Pgbench:
    """Transactions a second without the time of connecting, and their mean latency."""

    name = "pgbench"
    summary = "pgbench, its report on standard output"
    columns = (_RATE, _LATENCY)
    remarks = (
        "of the whole run, not of each script or statement; before PostgreSQL 14 the rate that excludes "
        "connections establishing. An aborted run is refused; transactions that failed are told"
    )
    of_groups = False
    begins = (r"^pgbench \([0-9]", r"^transaction type: ")

    def recognises(self, text: str) -> bool:
        """Whether it has what only pgbench prints."""
        return bool(re.search(r"^tps = ", text, re.MULTILINE)) and "transaction type: " in text

    def read(self, text: str) -> Report:
        """Rate and latency. Raises OutputDamaged, OutputEmpty."""
        if "Run was aborted" in text:
            problem = "the run was aborted: its results are incomplete"
            raise OutputDamaged(format=self.name, where="the whole", problem=problem)
        rate = only(_WITHOUT_CONNECTING, text, self.name) or the_only(_WITH_RECONNECTING, text, self.name)
        values = {
            _RATE: rate,
            _LATENCY: the_only(r"^latency average(?: =|:) (\S+) ms", text, self.name),
        }
        read = {column: measured(value, self.name, column.metric) for column, value in values.items()}
        if not read[_RATE]:
            raise OutputEmpty(format=self.name, problem="no transaction was processed")
        return Report(
            tuple(
                Measured(metric_column.metric, (value,), metric_column.unit, metric_column.direction)
                for metric_column, value in read.items()
            ),
            notes=(*_LINES.remainder(text), *_notes(text, self.name)),
            conditions=_LINES.conditions_of(text),
        )


def _notes(text: str, format: str) -> Iterator[Note]:
    failed = only(r"^number of failed transactions: (\d+)", text, format)
    if failed and int(failed):
        yield Note(f"{failed} transactions failed: they are not among those that are counted")
    late = only(r"^number of transactions skipped: (\d+)", text, format)
    if late and int(late):
        yield Note(f"{late} transactions were skipped, for they were late already")


FORMAT = Pgbench()
