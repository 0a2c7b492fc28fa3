"""sysstat's samples of a machine: sadf -j and sadf -d (sysstat 12)."""

from collections.abc import Iterator
from typing import Any

from ktrial.program_outputs import Note, Report
from ktrial.program_outputs.errors import OutputDamaged, OutputEmpty
from ktrial.program_outputs.keys import KeyPatterns
from ktrial.program_outputs.machine_load import COLUMNS, Sample, of_sysstat, report
from ktrial.program_outputs.reading import (
    conditions_of,
    has_keys,
    json_report,
    object_of,
    objects_of,
)
from ktrial.text_lines import lines_of

_PARTS = ("process-and-context-switch", "swap-pages", "queue")
_CONDITIONS = {"host": "nodename", "kernel": "release", "machine": "machine", "CPUs": "number-of-cpus"}
_HEADING = "# hostname;interval;timestamp;"
_FIXED = 3
_ALL_CPUS = ("-1", "all")
_KEYS = KeyPatterns(
    measurements=(
        "sysstat/hosts/statistics/{timestamp,cpu-load,process-and-context-switch,queue,swap-pages}/*",
    ),
    conditions=("sysstat/hosts/{nodename,sysname,release,machine,number-of-cpus}",),
    decoration=("sysstat/hosts/{file-date,file-utc-time,timezone}", "sysstat/hosts/restarts/**"),
)


class Sysstat:
    """The means of all samples, of all CPUs together."""

    name = "sysstat"
    summary = "sadf -j FILE -- -u -q -w -W, or sadf -d FILE -- -u"
    columns = COLUMNS
    remarks = (
        "means of all samples, of all CPUs together. In `ktrial analyze` they are conditions of results "
        "with the same label, unless `--value` names one"
    )
    of_groups = False

    def recognises(self, text: str) -> bool:
        """Whether sadf wrote it."""
        return has_keys(text, "sysstat", "hosts", "statistics") or text.lstrip().startswith(_HEADING)

    def read(self, text: str) -> Report:
        """The means. Raises OutputDamaged, OutputEmpty."""
        if not self.recognises(text):
            raise OutputEmpty(format=self.name, problem="sadf did not write it")
        if text.lstrip().startswith(_HEADING):
            return report(self.name, self._rows(text))
        whole = json_report(text, self.name)
        document = object_of(whole.get("sysstat"), self.name, "sysstat")
        hosts = objects_of(document.get("hosts"), self.name, "hosts")
        if len(hosts) != 1:
            raise OutputDamaged(format=self.name, where="hosts", problem=f"there are {len(hosts)}, not one")
        records = objects_of(hosts[0].get("statistics"), self.name, "statistics")
        stamps = [str(record.get("timestamp")) for record in records]
        if len(set(stamps)) < len(stamps):
            raise OutputDamaged(format=self.name, where="timestamp", problem="a sample is there twice")
        samples = [self._record(record, f"sample {at}") for at, record in enumerate(records, 1)]
        if len({frozenset(sample.numbers) for sample in samples}) > 1:
            raise OutputDamaged(
                format=self.name, where="statistics", problem="a sample tells less than others"
            )
        read = report(self.name, samples, tuple(_restarts(hosts[0])))
        told = conditions_of(hosts[0], _CONDITIONS)
        notes = (*read.notes, *_KEYS.remainder(whole))
        return Report(read.measured, read.failures, notes, {**told, **read.conditions})

    def _record(self, record: dict[str, Any], where: str) -> Sample:
        loads = record.get("cpu-load", record.get("cpu-load-all"))
        rows = objects_of(loads, self.name, f"{where}, cpu-load")
        row = next((row for row in rows if str(row.get("cpu")) in _ALL_CPUS), None)
        if row is None:
            raise OutputDamaged(format=self.name, where=where, problem="all CPUs together are not in it")
        facts = dict(row)
        for part in _PARTS:
            if part in record:
                facts |= object_of(record[part], self.name, f"{where}, {part}")
        return Sample(of_sysstat(facts, self.name, where), where)

    def _rows(self, text: str) -> list[Sample]:
        """The table of CPUs in sadf -d; tables of other things follow under headings of their own."""
        names, samples, stamps = list[str](), list[Sample](), set[str]()
        for at, line in enumerate(lines_of(text), 1):
            cells = line.split(";")
            if line.startswith(_HEADING):
                names = [name.lstrip("%") for name in cells]
            elif "idle" in names and line.strip():
                if len(cells) != len(names):
                    problem = f"it has {len(cells)} fields, not {len(names)}"
                    raise OutputDamaged(format=self.name, where=f"line {at}", problem=problem)
                if cells[_FIXED] not in _ALL_CPUS:
                    continue
                if cells[_FIXED - 1] in stamps:
                    raise OutputDamaged(format=self.name, where=f"line {at}", problem="it is there twice")
                stamps.add(cells[_FIXED - 1])
                facts = dict(zip(names[_FIXED + 1 :], cells[_FIXED + 1 :], strict=True))
                samples.append(Sample(of_sysstat(facts, self.name, f"line {at}"), f"line {at}"))
        return samples


def _restarts(host: dict[str, Any]) -> Iterator[Note]:
    if restarts := host.get("restarts"):
        yield Note(f"the machine was started {len(restarts)} times in between")


FORMAT = Sysstat()
