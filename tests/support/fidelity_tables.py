"""What a store keeps of a fidelity result, made up."""

from pathlib import Path

from ktrial.analysis.fidelity_citation import keep
from ktrial.model.fidelity import CountBands, FidelityTable, SizeBand
from ktrial.store.store import open_store


def a_table(decided: int, study: int = 1) -> FidelityTable:
    """Of changes by 10 % and more by instructions; real time decided so many, all with the right sign."""
    bands = (
        SizeBand(low=1.0, high=1.1, decided=0, same_sign=0, undecided=9),
        SizeBand(low=1.1, high=1.3, decided=decided, same_sign=decided, undecided=2),
        SizeBand(low=1.3, high=None, decided=decided, same_sign=decided, undecided=0),
    )
    return FidelityTable(
        studies=((study, study),), names=("calls",), machine="host", cpu_models=("EPYC",),
        counts=(CountBands(count="instructions", bands=bands),),
    )  # fmt: skip


def keep_a_table(store: Path, decided: int, study: int) -> None:
    """In the store, beside the study."""
    with open_store(str(store)) as opened:
        assert keep(opened, a_table(decided, study))
