"""Configuration options that a search varies: what they are, and whether the source takes their values."""

from dataclasses import dataclass

from ktrial.experiment.kernel_builds import Builder
from ktrial.kernels import Progress
from ktrial.model.kernel_build import Build, Change
from ktrial.model.tuning import Cost, Dimension
from ktrial.optimize.candidate_values import range_of
from ktrial.studyfile.knob_patterns import OPTION, Wanted

NOT_SET = "n"
"""What `# CONFIG_X is not set` stands for."""


@dataclass(frozen=True)
class Options:
    """The options of the kernel that a study builds. Configuring takes seconds; nothing is compiled."""

    build: Build
    builder: Builder
    progress: Progress

    def dimension(self, wanted: Wanted) -> Dimension | str:
        """What is searched of the option, or why nothing is.

        Raises KernelError where the source does not take one of the values (OptionNotTaken).
        """
        name = f"CONFIG_{wanted.name.removeprefix(OPTION)}"
        now = self.builder.configured(self.build, self.progress).get(name, NOT_SET)
        edges = () if wanted.low is None else (str(wanted.low), str(wanted.high))
        for value in wanted.values or edges:
            if value != now:
                self._try(name, value)
        choices = tuple(dict.fromkeys((now, *wanted.values)))
        if wanted.values and choices == (now,):
            return f"it is {now} already, and no other value is given"
        return Dimension(
            name=wanted.name,
            cost=Cost.BUILD,
            range=range_of(wanted.low, wanted.high) if wanted.low is not None and wanted.high else None,
            choices=choices if wanted.values else (),
            default=now,
            summary="an option of the kernel's build",
        )

    def _try(self, name: str, value: str) -> None:
        changed = self.build.changed(Change(options={name: value}))
        if self.builder.cached(changed) is None:
            self.builder.configured(changed, self.progress)
