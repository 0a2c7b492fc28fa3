"""Draws mutants of the code that verdicts and settings rest on, and counts those that `make test` notices.

python -m tests.mutation [AREA…] [--sample N] [--seed S] [--record]; README.md says how to read the result.
The exit status is 1 where less than 85 % are noticed in an area.
"""

import argparse
import random
import sys
import tomllib
from pathlib import Path

from tests.mutation.equivalent import Equivalents
from tests.mutation.mutants import Mutant, mutants_of
from tests.mutation.scores import Score, record, table
from tests.mutation.trying import Area, Attempts, Workshop

HERE = Path(__file__).parent
LEAST = 0.85
"""The share of mutants that have to be noticed in each area."""


def areas(file: Path) -> list[Area]:
    tables = tomllib.loads(file.read_text(encoding="utf-8"))
    keys = ("mutate", "tests", "users")
    return [Area(name, *(tuple(table.get(key, ())) for key in keys)) for name, table in tables.items()]


def all_mutants(root: Path, area: Area) -> list[Mutant]:
    files = sorted({path for pattern in area.mutate for path in root.glob(pattern)})
    if not files:
        sys.exit(f"{area.name}: there is no file {', '.join(area.mutate)}")
    return [mutant for path in files for mutant in mutants_of(root, str(path.relative_to(root)))]


def draw(mutants: list[Mutant], options: argparse.Namespace) -> list[Mutant]:
    """A sample; with `--apart-from`, without those that another seed has drawn."""
    by_name = {mutant.name: mutant for mutant in mutants}

    def sample(names: list[str], seed: int) -> list[str]:
        return random.Random(seed).sample(names, min(options.sample, len(names)))

    names = sorted(by_name)
    for seed in options.apart_from:
        names = sorted(set(names) - set(sample(names, seed)))
    return [by_name[name] for name in sorted(sample(names, options.seed))]


def score(area: Area, options: argparse.Namespace) -> Score:
    """Try a sample of the area's mutants. What was tried before is not tried again."""
    mutants = all_mutants(options.root, area)
    equivalents = Equivalents(options.root, area.name, mutants)
    drawn = [mutant for mutant in draw(mutants, options) if not equivalents.reason(mutant)]
    attempts = Attempts(options.work / f"{area.name}.tried.json", options.root)
    left = [mutant for mutant in drawn if mutant.name not in attempts.outcomes]
    if left:
        with Workshop(options.root, options.work / area.name, area) as workshop:
            for place, mutant in enumerate(left, 1):
                outcome = attempts.add(mutant, workshop.attempt(mutant))
                print(f"{place}/{len(left)} {mutant.name}: {outcome}", file=sys.stderr, flush=True)
    outcomes = {mutant.name: attempts.outcomes[mutant.name] for mutant in drawn}
    result = Score(area.name, options.seed, len(mutants), outcomes)
    diffs = "\n".join(mutant.diff() for mutant in drawn if mutant.name in result.survivors)
    (options.work / f"{area.name}.survivors.diff").write_text(diffs, encoding="utf-8")
    return result


def options_given() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("area", nargs="*", help="as in the file of areas (default: all)")
    parser.add_argument("--sample", type=int, default=40, help="mutants drawn in each area (default: 40)")
    parser.add_argument("--seed", type=int, default=1, help="of the draw (default: 1)")
    parser.add_argument(
        "--apart-from",
        type=int,
        nargs="*",
        default=[],
        metavar="SEED",
        help="draw none that these draw",
    )
    parser.add_argument("--record", action="store_true", help="write the shares into measured.md")
    parser.add_argument("--areas", type=Path, default=HERE / "areas.toml")
    parser.add_argument("--root", type=Path, default=HERE.parents[1], help="the checkout (default: this one)")
    parser.add_argument("--work", type=Path, default=HERE.parents[1] / "target" / "mutation")
    options = parser.parse_args()
    options.known = areas(options.areas)
    names = [area.name for area in options.known]
    if unknown := set(options.area) - set(names):
        parser.error(f"no area {', '.join(sorted(unknown))}; there are {', '.join(names)}")
    return options


def main() -> int:
    """0 where every area's share is high enough."""
    options = options_given()
    options.work.mkdir(parents=True, exist_ok=True)
    wanted = [area for area in options.known if not options.area or area.name in options.area]
    scores = []
    for area in wanted:
        scores.append(score(area, options))
        print(table(scores[-1:]), flush=True)
        if options.record:
            record(HERE / "measured.md", scores[-1])
    low = [result for result in scores if result.share < LEAST]
    for result in low:
        print(
            f"{result.area}: {result.share:.0%} of its mutants are noticed, and {LEAST:.0%} have to be; what "
            f"survived is in {options.work / result.area}.survivors.diff",
            file=sys.stderr,
        )
    return 1 if low else 0


if __name__ == "__main__":
    sys.exit(main())
