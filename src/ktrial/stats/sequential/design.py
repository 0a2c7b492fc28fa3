"""How a timed study is judged: margin, error, looks."""

from dataclasses import dataclass, replace

from ktrial.stats.sequential.boundaries import FEWEST_BLOCKS, LOOKS, boundaries, critical_t

_GROWTH = (60, 90, 120)


@dataclass(frozen=True)
class SequentialDesign:
    """The rule by which a study stops. Fixed before its first block."""

    margin: float = 0.01
    """The smallest relative change that matters: 0.01 for 1 %."""
    alpha: float = 0.05
    """Probability of a false claim of a difference, two-sided, over all looks together."""
    looks: tuple[int, ...] = LOOKS
    """After how many blocks it is looked at; the last is the most blocks that the study may have."""
    open_ended: bool = False
    """Look after every block, without end, by a confidence sequence; `looks` is then not used."""
    independent: bool = False
    """Whether blocks have nothing in common by design: each trial a boot of its own, or other settings
    between each two blocks. Then the interval is not widened for what neighbours have in common."""

    def __post_init__(self) -> None:
        if not 0 < self.margin < 1:
            raise ValueError("a margin lies above 0 and below 1")
        if not self.open_ended:
            self.edges(1)

    @property
    def last(self) -> int | None:
        """The most blocks that it may have; None where it is open-ended."""
        return None if self.open_ended else self.looks[-1]

    @property
    def looks_once(self) -> bool:
        """Whether the number of blocks is fixed beforehand."""
        return not self.open_ended and len(self.looks) == 1

    def looked_at(self, blocks: int, *, final: bool = False) -> tuple[int, ...]:
        """The looks there have been after so many blocks; `final` adds one at the end, between two looks."""
        if self.open_ended:
            return tuple(range(FEWEST_BLOCKS, blocks + 1))
        past = tuple(look for look in self.looks if look <= blocks)
        early = final and FEWEST_BLOCKS <= blocks < self.looks[-1] and blocks not in past
        return (*past, blocks) if early else past

    def next_look(self, blocks: int) -> int | None:
        """The number of blocks at which to look again; None where there is no further look."""
        if self.open_ended:
            return max(blocks + 1, FEWEST_BLOCKS)
        return next((look for look in self.looks if look > blocks), None)

    def edges(self, among: int, looked: tuple[int, ...] = ()) -> tuple[float, ...]:
        """|t| at each look that ends a comparison, if the error is shared `among` so many."""
        looked = looked or self.looks
        level = self.alpha / among
        if self.open_ended:
            return tuple(critical_t(blocks, level) for blocks in looked)
        if looked == self.looks[: len(looked)]:  # a look's boundary does not depend on later ones
            return boundaries(self.looks, level)[: len(looked)]
        return boundaries(looked, level, self.looks[-1])

    def up_to(self, blocks: int) -> "SequentialDesign":
        """The same rule with so many blocks at most, and looks at the usual places below."""
        return replace(self, looks=usual_looks(blocks))


def usual_looks(blocks: int) -> tuple[int, ...]:
    """6, 10, 15, 20, 30, 40, 60, 90, 120, 180, 240…, and the last at `blocks`."""
    looks = list(LOOKS)
    while looks[-1] < blocks:
        looks.append(looks[-2] * 2 if len(looks) > len(LOOKS) else _GROWTH[1])
    return (*(look for look in looks if look < blocks), blocks)
