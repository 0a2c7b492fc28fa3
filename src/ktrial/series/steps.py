"""The steps of a series: the base, then what became of each patch's kernel."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum

from ktrial.kernels.kconfig.config import parse_config
from ktrial.model.kernel import Build, Kernel
from ktrial.model.patch_series import SeriesPatch

_OF_THE_BUILD = frozenset({"CONFIG_CC_VERSION_TEXT", "CONFIG_BUILD_SALT"})


class StepState(StrEnum):
    """What became of a step."""

    BUILT = "built"
    """It is another kernel than the one before."""
    NOT_COMPILED = "not compiled"
    """It changes nothing that this configuration compiles: nothing was built."""
    SAME_IMAGE = "same image"
    """It was built, and loads the same bytes as the one before, line numbers of warnings apart."""
    NOT_CONFIGURED = "not configurable"
    """An option that is asked for cannot be set yet: the first patch with which it can is the base."""
    NOT_APPLIED = "does not apply"
    NOT_BUILT = "does not build"
    NOT_BOOTED = "does not boot"

    @property
    def is_broken(self) -> bool:
        """Whether there is no kernel to measure."""
        return self in _BROKEN


_BROKEN = {StepState.NOT_APPLIED, StepState.NOT_BUILT, StepState.NOT_BOOTED}


@dataclass(frozen=True)
class OptionStep:
    """One option that is not the same after a patch."""

    option: str
    """Without `CONFIG_`."""
    before: str | None
    """None: it is not set, or the source does not have it."""
    after: str | None
    brought: bool = False
    """Whether the patch brings it."""

    def __str__(self) -> str:
        """`SCHED_FOO=y (new)`, `HZ: 250 → 1000`."""
        before, after = self.before or "n", self.after or "n"
        return f"{self.option}={after} (new)" if self.brought else f"{self.option}: {before} → {after}"


@dataclass(frozen=True)
class Step:
    """The base, or one patch."""

    patch: SeriesPatch | None
    """None: the base."""
    state: StepState
    kernel: Kernel | None = None
    """What is measured; of a step without an own image, the one before. None where it is broken."""
    build: Build | None = None
    """What was compiled last, up to here."""
    why: str = ""
    """Why there is no kernel, or no own one, in one sentence."""
    left_out: bool = False
    """Whether the steps after it go on without this patch."""
    mended_by: int | None = None
    """The number of the patch with which it works again."""
    options: tuple[OptionStep, ...] = ()
    functions: tuple[str, ...] = ()
    """Functions whose code is not the same as in the step before."""
    data: tuple[str, ...] = ()
    """Variables and tables of the same kind."""
    is_compared: bool = True
    """Whether its code could be compared with that of the step before."""
    notes: tuple[str, ...] = field(default=())

    @property
    def number(self) -> int:
        """0 for the base."""
        return self.patch.number if self.patch else 0

    @property
    def is_own(self) -> bool:
        """Whether it has a kernel that the step before has not."""
        return self.patch is None or self.state is StepState.BUILT

    @property
    def only_moves(self) -> bool:
        """Whether its kernel has the functions and data of the one before, at other addresses."""
        same = self.is_compared and not self.functions and not self.data
        return self.patch is not None and self.state is StepState.BUILT and same


def option_steps(before: Kernel, after: Kernel) -> tuple[OptionStep, ...]:
    """What differs between two configurations, by name; what the patch brings is told where it is off too."""
    if before.config is None or after.config is None:
        return ()
    old, new = (parse_config(one.config.read_text(encoding="utf-8")) for one in (before, after) if one.config)
    known = {one.option for one in before.origin.new_options}
    brought = {one.option: one.value for one in after.origin.new_options if one.option not in known}
    differing = {name for name, _ in old.items() ^ new.items()} - _OF_THE_BUILD
    return tuple(
        OptionStep(name.removeprefix("CONFIG_"), old.get(name), new.get(name), name in brought)
        for name in sorted(differing | brought.keys())
    )


def measured(steps: Iterable[Step]) -> list[Step]:
    """The steps that have a kernel of their own, and the base."""
    return [one for one in steps if one.is_own and one.kernel is not None]
