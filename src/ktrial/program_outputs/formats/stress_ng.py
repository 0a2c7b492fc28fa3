"""stress-ng --metrics --yaml (stress-ng's manual): bogo operations a second of each stressor."""

import re
from typing import Any

import yaml

from ktrial.model.workload import Direction
from ktrial.program_outputs import Column, Measured, Note, Report, distinct
from ktrial.program_outputs.errors import OutputDamaged, OutputEmpty
from ktrial.program_outputs.reading import conditions_of, measured, objects_of, text_of

_RATE = Column("operations", "1/s", Direction.HIGHER)
_BY_CPU = Column("operations by CPU time", "1/s", Direction.HIGHER)
_KEYS = {_RATE: "bogo-ops-per-second-real-time", _BY_CPU: "bogo-ops-per-second-usr-sys-time"}
_CONDITIONS = {
    "version": "system-info.stress-ng-version",
    "kernel": "system-info.release",
    "kernel build": "system-info.version",
    "host": "system-info.hostname",
    "CPUs": "system-info.cpus-online",
    "compiler": "system-info.compiler",
    "date": "system-info.date-yyyy-mm-dd",
}
_LARGEST = 1 << 20
"""Characters: all stressors together have less, and a YAML reader is slow."""
_FAILED = re.compile(
    r"^.*(?:unsuccessful run|data is compromised|metrics corrupted|metrics are untrustworthy).*$",
    re.MULTILINE,
)
"""What stress-ng prints where its own checks failed."""
_DOCUMENT = re.compile(r"^---\s*$.*", re.MULTILINE | re.DOTALL)


class StressNg:
    """By real time, and by the CPU time that the stressor used."""

    name = "stress-ng-yaml"
    summary = "stress-ng --metrics --yaml /proc/self/fd/1"
    columns = (_RATE, _BY_CPU)
    remarks = (
        "bogo operations, which each stressor defines and another version may define otherwise; none of "
        "the stressors' own numbers. A stressor that did none is left out, with a warning"
    )
    of_groups = False
    begins = (r"^---$",)

    def recognises(self, text: str) -> bool:
        """Whether it has what only stress-ng writes."""
        return "stress-ng-version:" in text

    def read(self, text: str) -> Report:
        """The metrics of each stressor. Raises OutputDamaged, OutputEmpty."""
        if failure := _FAILED.search(text):
            raise OutputDamaged(
                format=self.name, where="the whole", problem=f"it says {failure[0].strip()!r}"
            )
        document = self._document(text)
        if not isinstance(document, dict) or not document.get("metrics"):
            raise OutputEmpty(format=self.name, problem="it has no metrics: --metrics asks for them")
        rows = objects_of(document["metrics"], self.name, "metrics")
        names = distinct([text_of(row.get("stressor")) or "stressor" for row in rows])
        read: list[Measured] = []
        failures: list[Note] = []
        for name, row in zip(names, rows, strict=True):
            if not measured(row.get("bogo-ops"), self.name, f"{name}, bogo-ops"):
                failures.append(Note(f"{name} did no operation: it is left out"))
                continue
            for column, key in _KEYS.items():
                value = measured(row.get(key), self.name, f"{name}, {key}")
                if value or column is _RATE:
                    read.append(Measured(column.metric, (value,), column.unit, column.direction, name))
        if not read:
            raise OutputEmpty(format=self.name, problem=failures[0].text)
        return Report(tuple(read), tuple(failures), conditions=conditions_of(document, _CONDITIONS))

    def _document(self, text: str) -> Any:
        """As texts: to YAML 1.1 `null` and `on` are no names. Aliases are refused: they grow without end."""
        begins = _DOCUMENT.search(text)
        if begins is None:
            raise OutputDamaged(format=self.name, where="the whole", problem="no line `---` begins the YAML")
        if len(begins[0]) > _LARGEST:
            raise OutputDamaged(
                format=self.name, where="the whole", problem="it is longer than any report of stress-ng"
            )
        try:
            if any(isinstance(token, yaml.AliasToken) for token in yaml.scan(begins[0], yaml.CBaseLoader)):
                raise OutputDamaged(format=self.name, where="the whole", problem="it has YAML aliases")
            _check_keys(yaml.compose(begins[0], yaml.CBaseLoader), self.name)
            return yaml.load(begins[0], yaml.CBaseLoader)
        except yaml.MarkedYAMLError as error:
            where = f"line {error.problem_mark.line + 1}" if error.problem_mark else "somewhere in it"
            raise OutputDamaged(
                format=self.name, where=where, problem=f"this is not YAML: {error.problem}"
            ) from error
        except (yaml.YAMLError, RecursionError, ValueError) as error:
            raise OutputDamaged(
                format=self.name, where="somewhere in it", problem=f"this is not YAML: {error}"
            ) from error


def _check_keys(node: yaml.Node | None, format: str) -> None:
    """Every mapping says one thing of each key: YAML's readers take the last."""
    if isinstance(node, yaml.MappingNode):
        keys = [key.value for key, _ in node.value if isinstance(key, yaml.ScalarNode)]
        if twice := next((key for key in keys if keys.count(key) > 1), ""):
            where = f"line {node.start_mark.line + 1}"
            raise OutputDamaged(format=format, where=where, problem=f"the key {twice} is there twice")
    children = node.value if isinstance(node, yaml.SequenceNode | yaml.MappingNode) else []
    for child in children:
        for part in child if isinstance(child, tuple) else (child,):
            _check_keys(part, format)


FORMAT = StressNg()
