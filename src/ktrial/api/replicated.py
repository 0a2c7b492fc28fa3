"""What `import ktrial` gives of a bundle that was run again."""

import tempfile
from pathlib import Path

from ktrial.bundle.reading import open_bundle
from ktrial.bundle.replicating import Replicated, ReplicationRequest, replicate
from ktrial.model.replication import Agreement, Replication
from ktrial.report.notebook import replication_fragment
from ktrial.report.replication import replication_page
from ktrial.store.store import open_store


class ReplicatedStudy:
    """A bundle's study, run again, beside what it measured first."""

    def __init__(self, replicated: Replicated) -> None:
        self._made = replicated

    @property
    def replication(self) -> Replication:
        """Every pair of numbers and of verdicts, what differs between the two runs, and the outcome."""
        return self._made.replication

    @property
    def identical(self) -> tuple[int, int]:
        """How many numbers are identical to the last digit, and how many were compared."""
        replication = self._made.replication
        return replication.count(Agreement.IDENTICAL), len(replication.numbers)

    def to_html(self) -> str:
        """The page that shows both."""
        return replication_page(self._made.replication, self._made.before, self._made.now)

    def _repr_html_(self) -> str:
        return replication_fragment(self._made.replication)

    def __repr__(self) -> str:
        return f"<ReplicatedStudy {self._made.replication.study}: {self._made.replication.said}>"


def run_again(
    file: Path, only: tuple[str, ...], perturbations: int | None, signers: Path | None, jobs: int | None
) -> ReplicatedStudy:
    """See `ktrial.replicate`: what is measured is kept in the object alone."""
    with (
        open_bundle(file, signers) as bundle,
        tempfile.TemporaryDirectory(prefix="ktrial-replicate-") as directory,
        open_store(Path(directory) / "bundle.db") as first,
        open_store(Path(directory) / "fresh.db") as fresh,
    ):
        return ReplicatedStudy(
            replicate(bundle, (first, fresh), ReplicationRequest(only, perturbations), jobs=jobs)
        )
