"""Labels that the user gave to files: what they say is compared, also where the files name it differently."""

from collections.abc import Sequence

from ktrial.model.imported import Family, Imported
from ktrial.model.warnings import DataWarning, WarningKind
from ktrial.program_outputs.numbers import same_time_unit

_SAME = "give the same names to what is to be compared, or files of one command or benchmark each"


def as_labelled(files: Sequence[tuple[str, Imported]]) -> list[Imported]:
    """The files of one importer, each with its label, ready to be put together.

    Files of one thing each are compared whatever it is called in them, which is told. Where they hold several
    and none is in two of them, nothing can be compared: that is told, and what to do.
    """
    read = [imported for _, imported in files]
    if len({label for label, _ in files}) < 2 or not all(label for label, _ in files) or _shared(read):
        return read
    if all(_alike(each, read[0]) for each in read):
        return _under_one_name(files)
    text = f"nothing is in two of the files, so nothing is compared: {_contents(files)}"
    return [*read[:-1], _warned(read[-1], text, _SAME)]


def _shared(files: Sequence[Imported]) -> bool:
    """Whether anything is in two files under the same name."""
    names = [name for each in files for name in {family.name for family in each.families}]
    return len(set(names)) < len(names)


def _alike(file: Imported, first: Imported) -> bool:
    """Whether both hold one thing, in units and with a direction that can be compared."""
    if (len(file.families), len(first.families)) != (1, 1) or file.index_rows or file.scores:
        return False
    (one,), (other,) = file.families, first.families
    units = one.unit == other.unit or same_time_unit(one.unit, other.unit)
    return units and one.direction is other.direction


def _under_one_name(files: Sequence[tuple[str, Imported]]) -> list[Imported]:
    name = " and ".join(each.families[0].name for _, each in files)
    read = [each.model_copy(update={"families": (_named(each.families[0], name),)}) for _, each in files]
    text = f"what the labels name is compared, but not the same was measured: {_contents(files)}"
    return [*read[:-1], _warned(read[-1], text, "without labels each file stands for itself")]


def _named(family: Family, name: str) -> Family:
    return family.model_copy(update={"name": name, "metric": name})


def _contents(files: Sequence[tuple[str, Imported]]) -> str:
    return "; ".join(
        f"{label} has {', '.join(family.name for family in each.families) or 'nothing'}"
        for label, each in files
    )


def _warned(file: Imported, text: str, advice: str) -> Imported:
    warning = DataWarning(kind=WarningKind.INPUT_INCOMPLETE, text=text, advice=advice)
    return file.model_copy(update={"warnings": (*file.warnings, warning)})
