"""What a search needs of whoever measures."""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, Protocol, TypeAlias

from ktrial.model.base import Model
from ktrial.model.tuning import Configuration, Observation, Purpose
from ktrial.model.workload import Mode


class Ask(Model):
    """One run that the search wants. The observation that answers it has the same fields."""

    configuration: Configuration
    purpose: Purpose
    order: int
    """Running number, from 0; an interrupted search asks the same again."""
    block: int | None = None
    perturbation: int = 0
    """Noise-free mode: 0 is the plain run, 1 to `Measuring.perturbations` - 1 are perturbed ones."""


class Measuring(Protocol):
    """Measures configurations on some machine."""

    @property
    def noise_free(self) -> bool:
        """Whether the same configuration gives the same number every time: nothing is then repeated."""

    @property
    def at_once(self) -> int:
        """How many runs go on in parallel; 1 on a host."""

    @property
    def perturbations(self) -> int:
        """How many runs of one configuration differ by what must not matter (the plain one counts); 1 where
        there are no perturbations. Noise-free mode only."""

    @property
    def mode(self) -> Mode:
        """What its numbers are."""

    def measure(self, batch: Sequence[Ask]) -> Iterator[Observation]:
        """One observation for each ask, as each ends: with several at once not in the order of the batch.

        A run that fails is an observation with `failure`, and so is a value that the kernel refused or
        changed. What says nothing about the configuration is raised (Interrupted, a machine that is gone).
        """


class Stage(NamedTuple):
    """Where the search is."""

    purpose: Purpose
    done: int
    """Runs so far, of the whole search."""
    runs: int
    """Runs that it will take at most, as far as is known."""
    text: str = ""
    """What just happened, in a line; empty where a run merely ended."""


Progress: TypeAlias = Callable[[Stage], None]
