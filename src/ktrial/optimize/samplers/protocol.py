"""What a search needs of an optimiser, and how one is found by name."""

from collections.abc import Sequence
from importlib import import_module
from pkgutil import iter_modules
from typing import NamedTuple, Protocol

from ktrial.model.tuning import Configuration
from ktrial.optimize.encoding import Encoding
from ktrial.studyfile.errors import TuningError


class Evaluation(NamedTuple):
    """One run, as an optimiser hears of it."""

    configuration: Configuration
    scores: tuple[float, ...]
    """One an objective, corrected for drift, larger is better; empty where the run failed."""
    excess: float
    """How far the worst guard was exceeded, relative to its bound; 0 where all were kept."""


class Optimiser(Protocol):
    """Proposes configurations. Deterministic: the same seed and the same tells give the same asks."""

    def ask(self, count: int, fixed: Configuration | None = None) -> list[Configuration]:
        """So many configurations that meet all constraints, to be measured at once.

        `fixed` names values that all of them have, of dimensions that are dear to change.
        """

    def tell(self, told: Sequence[Evaluation]) -> None:
        """What was measured; asked for or not."""


def optimiser(name: str, encoding: Encoding, objectives: int, seed: int) -> Optimiser:
    """The optimiser in the module of this name (`tpe`, `random`). Raises UnknownOptimiser."""
    package = __name__.rpartition(".")[0]
    here = import_module(package)
    known = sorted({each.name for each in iter_modules(here.__path__)} - {"protocol"})
    if name not in known:
        raise TuningError(f"There is no optimiser {name}.", hint=f"there are {', '.join(known)}")
    made: Optimiser = import_module(f"{package}.{name}").make(encoding, objectives, seed)
    return made
