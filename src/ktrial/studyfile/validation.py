"""Reads the file's tables with pydantic, and says in ktrial's own words what is wrong with them."""

import copy
from types import UnionType
from typing import Any, Literal, get_args, get_origin

from pydantic import ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from ktrial.studyfile.diagnostics import KeyPath, Mistakes, path_in, shown
from ktrial.studyfile.schema import (
    CgroupTable,
    DiskTable,
    FactorTable,
    KernelTable,
    KeyTable,
    MachineTable,
    MetricTable,
    SearchTable,
    StudyTable,
    TimedTable,
    WorkloadTable,
)

_BELOW: dict[str, type[KeyTable]] = {
    "machine": MachineTable,
    "cgroup": CgroupTable,
    "disk": DiskTable,
    "timed": TimedTable,
    "kernels": KernelTable,
    "factors": FactorTable,
    "search": SearchTable,
    "workloads": WorkloadTable,
    "metrics": MetricTable,
}
_MANY = {"kernels", "factors", "workloads", "metrics"}


def read_tables(data: dict[str, Any], mistakes: Mistakes) -> StudyTable | None:
    """The study's tables; None where so much is wrong that the rest says nothing.

    A value that is refused is left out, so that what else is wrong is found as well: `mistakes` holds all.
    """
    if not {"factors", "search"} & data.keys():
        allowed = StudyTable.model_fields["factors"].description
        mistakes.add(("factors",), f'the key "factors" is missing: {allowed}')
        _leave_out(("factors",), mistakes)
    try:
        return StudyTable.model_validate(data)
    except ValidationError as error:
        for details in error.errors():
            _note(details, mistakes)
        rest = _without([path_in(details["loc"], data) for details in error.errors()], data, mistakes)
    try:
        return StudyTable.model_validate(rest) if rest else None
    except ValidationError:  # one refused value was another one's reason
        return None


def _without(paths: list[KeyPath], data: dict[str, Any], mistakes: Mistakes) -> dict[str, Any] | None:
    """The data without what stands there; None where that would move or empty what is around it."""
    rest = copy.deepcopy(data)
    for path in sorted(set(paths), key=len, reverse=True):
        around: Any = rest
        for part in path[:-1]:
            around = around[part]
        if not path or not isinstance(around, dict):
            return None
        del around[path[-1]]
        _leave_out(path, mistakes)
    if not rest.get("factors", True):
        del rest["factors"]
        _leave_out(("factors",), mistakes)
    return rest


def _leave_out(path: KeyPath, mistakes: Mistakes) -> None:
    """A factor that is not read may have been the kernel."""
    mistakes.leave_out(path)
    if path[0] == "factors":
        mistakes.leave_out(("machine", "kernel"))


def read_workload(data: dict[str, Any], key: str, mistakes: Mistakes) -> WorkloadTable | None:
    """The workload's table under `key`; None where something is wrong, which `mistakes` then holds."""
    if not isinstance(data.get(key), dict):
        mistakes.add((key,), f"there is no table [{key}]; it says name, command and what they need")
        return None
    try:
        return WorkloadTable.model_validate(data[key])
    except ValidationError as error:
        for details in error.errors():
            _note({**details, "loc": ("workloads", 0, *details["loc"])}, mistakes, (key,))
        return None


def keys_of(table: type[KeyTable]) -> list[str]:
    """The keys that a table may have, in their order."""
    return [field.alias or name for name, field in table.model_fields.items()]


def _note(details: ErrorDetails, mistakes: Mistakes, root: tuple[str, ...] = ()) -> None:
    """`root`: the table that stands alone in its file, where it is one of `workloads` elsewhere."""
    path = (*root, *details["loc"][2:]) if root else details["loc"]
    table, field = _place(details["loc"])
    allowed = (field.description or "") if field else f"a table with {', '.join(keys_of(table))}"
    value = details["input"]
    match details["type"]:
        case "extra_forbidden":
            mistakes.unknown(path, "key", str(details["loc"][-1]), keys_of(table))
        case "missing":
            mistakes.add(path, f'the key "{details["loc"][-1]}" is missing: {allowed}')
        case "value_error":
            mistakes.add(path, f"found {shown(value)}: {details['ctx']['error']}")
        case "literal_error" if field and isinstance(value, str):
            mistakes.unknown(path, str(details["loc"][-1]), value, _choices(field.annotation))
        case _:
            mistakes.wrong(path, value, allowed)


def _place(loc: tuple[int | str, ...]) -> tuple[type[KeyTable], FieldInfo | None]:
    """The table that the location lies in, and its field; None where it is the table itself."""
    table: type[KeyTable] = StudyTable
    field: FieldInfo | None = None
    parts = iter(loc)
    for part in parts:
        named = {known.alias or name: known for name, known in table.model_fields.items()}
        field = named.get(str(part))
        if field and part in _BELOW:
            table = _BELOW[str(part)]
            if part in _MANY and next(parts, None) is not None:
                field = None
        elif field:
            break
    return table, field


def _choices(annotation: Any) -> list[str]:
    """What a Literal allows, also inside `Literal[…] | None`."""
    if get_origin(annotation) is Literal:
        return list(get_args(annotation))
    if isinstance(annotation, UnionType) or get_origin(annotation) is not None:
        return [choice for inner in get_args(annotation) for choice in _choices(inner)]
    return []
