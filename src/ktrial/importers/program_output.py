"""What programs print, as files: each format of `ktrial.program_outputs` is an importer."""

from dataclasses import dataclass

from ktrial.importers.errors import MeasurementsDamaged, NoMeasurements
from ktrial.importers.protocol import SourceFile
from ktrial.model.imported import Family, Group, Imported
from ktrial.model.warnings import DataWarning, WarningKind
from ktrial.program_outputs import Measured, OutputDamaged, OutputEmpty, OutputFormat, Report


@dataclass(frozen=True)
class ProgramOutput:
    """The importer of one format."""

    format: OutputFormat

    @property
    def name(self) -> str:
        """The format's."""
        return self.format.name

    @property
    def summary(self) -> str:
        """The format's."""
        return self.format.summary

    @property
    def one_group(self) -> bool:
        """Whether files are compared with each other; else what one file holds."""
        return not self.format.of_groups

    def recognises(self, file: SourceFile) -> bool:
        """Whether it looks like what this program prints."""
        return self.format.recognises(file.text)

    def read(self, file: SourceFile) -> Imported:
        """A family for each metric, its only group the file; or its groups what the file compares.

        Raises MeasurementsDamaged, NoMeasurements.
        """
        try:
            report = self.format.read(file.text)
        except OutputDamaged as error:
            raise MeasurementsDamaged(file=file.path, format=self.name, **_facts(error)) from error
        except OutputEmpty as error:
            raise NoMeasurements(file=file.path, format=self.name, **_facts(error)) from error
        in_groups = self.format.of_groups and not file.label
        families = _of_groups(file, report) if in_groups else _of_metrics(file, report)
        return Imported(
            source=file.name,
            format=self.name,
            families=families,
            warnings=tuple(_warnings(file.name, report)),
        )


def _facts(error: OutputDamaged | OutputEmpty) -> dict[str, str]:
    return {key: str(value) for key, value in error.facts.items() if key != "format"}


def _of_metrics(file: SourceFile, report: Report) -> tuple[Family, ...]:
    """A metric that is the only one is called as what was measured."""
    alone = len({each.metric for each in report.measured}) == 1
    return tuple(
        _family(each, each.of if alone and each.of else name, (_group(each, file.group),))
        for name, each in report.named().items()
    )


def _of_groups(file: SourceFile, report: Report) -> tuple[Family, ...]:
    families: dict[str, list[Measured]] = {}
    for each in report.measured:
        families.setdefault(each.metric, []).append(each)
    return tuple(
        _family(each[0], file.path.stem, tuple(_group(one, one.of) for one in each)).model_copy(
            update={"metric": metric, "run_order": tuple(one.of for one in each for _ in one.values)}
        )
        for metric, each in families.items()
    )


def _family(measured: Measured, name: str, groups: tuple[Group, ...]) -> Family:
    return Family(name=name, metric=name, unit=measured.unit, direction=measured.direction, groups=groups)


def _group(measured: Measured, label: str) -> Group:
    factors = dict(measured.parameters)
    return Group(label=label, factors=factors, values=measured.values, failed=measured.failed)


def _warnings(source: str, report: Report) -> list[DataWarning]:
    kinds = {WarningKind.FAILED_TRIALS: report.failures, WarningKind.INPUT_INCOMPLETE: report.notes}
    return [
        DataWarning(kind=kind, text=f"{source}: {each.text}", advice=each.advice)
        for kind, told in kinds.items()
        for each in told
    ]
