"""The command line of docs/write_numbers.py."""

import argparse
import sys
from pathlib import Path

from docs.measured import made_with
from docs.measured.comparing import differences
from docs.measured.declaration import Block, declared
from docs.measured.errors import NumbersError
from docs.measured.made_with import MadeWith
from docs.measured.measuring import Measuring
from docs.measured.pages import ROOT, write, written

from ktrial.errors import Interrupted, KtrialError
from ktrial.experiment.observer import Observer
from ktrial.model.trial import Trial


def main() -> int:
    """Measure, write or compare, and return the exit status."""
    chosen = arguments()
    blocks = [declared()[name] for name in chosen.names or sorted(declared())]
    if chosen.list:
        for block in blocks:
            print(f"{block.name}  {block.page}")
        return 0
    measuring = Measuring(chosen.place, chosen.jobs, Told())
    try:
        lines = [one(block, measuring, check=chosen.check) for block in blocks]
    except Interrupted as stopped:
        print(f"{stopped}\nthe same command goes on there", file=sys.stderr)
        return stopped.exit_code
    return int(not all(lines))


class Told(Observer):
    """Tells on standard error which trials have ended: a study takes minutes."""

    def trial_finished(self, trial: Trial, finished: int, total: int, seconds_left: float | None) -> None:
        """See Observer."""
        print(f"  {trial.planned.treatment.label}: {finished} of {total} trials", file=sys.stderr)


def arguments() -> argparse.Namespace:
    """What the user asked for."""
    parser = argparse.ArgumentParser(prog="write_numbers.py", description="Numbers in the documentation.")
    parser.add_argument("names", nargs="*", metavar="NAME", help="blocks; else all")
    parser.add_argument("--check", action="store_true", help="only say what differs, and exit with 1")
    parser.add_argument("--list", action="store_true", help="say which blocks there are, and measure nothing")
    parser.add_argument("--place", type=Path, help="where measurements are kept; else below ktrial's cache")
    parser.add_argument("-j", "--jobs", type=int, help="trials at once; else one a core")
    chosen = parser.parse_args()
    if unknown := sorted(set(chosen.names) - set(declared())):
        parser.error(f"there is no block {', '.join(unknown)}; there are: {', '.join(sorted(declared()))}")
    return chosen


def one(block: Block, measuring: Measuring, *, check: bool) -> bool:
    """Whether the block is as it is measured, or now is; what is wrong is printed. Raises Interrupted."""
    try:
        wrong = compared(block, measuring) if check else _written(block, measuring)
    except Interrupted:
        raise
    except (NumbersError, KtrialError) as error:
        wrong = [str(error)]
    verdict = ("differs" if wrong else "as measured") if check else ("not written" if wrong else "written")
    print(f"{block.name} ({block.page}): {verdict}")
    for line in wrong:
        print(f"  {line}")
    sys.stdout.flush()
    return not wrong


def compared(block: Block, measuring: Measuring) -> list[str]:
    """What differs, and what it is now measured with instead. Raises NumbersError, KtrialError."""
    now = written(ROOT / block.page, block.name)
    measuring.made_with = MadeWith()
    differing = differences(now, block.text(measuring))
    then = made_with.noted().get(block.name)
    return differing + (then.others(measuring.made_with) if differing and then else [])


def _written(block: Block, measuring: Measuring) -> list[str]:
    """Write it. Returns nothing; raises NumbersError, KtrialError where it could not be made."""
    written(ROOT / block.page, block.name)
    measuring.made_with = MadeWith()
    write(ROOT / block.page, block.name, block.text(measuring))
    if not block.simulated:
        made_with.note(block.name, measuring.made_with)
    return []
