"""How many functions of a kernel run in what `ktrial series` chooses from: of all, and of those that change.

    .venv/bin/python docs/measured/series_coverage.py debian:linux-source-6.1 OLDER-SOURCE

Prints the table of docs/series.md; seeds are 1, 2 and 3. What was drawn and is not executed is named on
standard error. A function counts that stands in the kernel's image under a name that no other has, and that
is defined in a C file of one of six directories, without `__init`. The first row has all of them. The second
has those whose text is another one than in the directory OLDER-SOURCE, an earlier release of the same series:
what maintainers changed. Comments and white space do not count as text.
"""

import random
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from ktrial import workloads
from ktrial.experiment.single_kernel import Runs
from ktrial.kernels.build.builds import build
from ktrial.kernels.build.debian_sources import debian_source
from ktrial.kernels.build.requests import requested
from ktrial.kernels.code_image import CodeImage, code_image
from ktrial.model.profile import without_numbers
from ktrial.model.study import MachineSettings, Measurement
from ktrial.model.workload import WorkloadUse
from ktrial.series.run import booted_in, coverage
from ktrial.series.selection import executed_in
from ktrial.store.store import open_store
from ktrial.workloads.tours import tours

DIRECTORIES = ("mm", "fs", "kernel", "net", "security", "block")
DRAWN, SEEDS = 40, (1, 2, 3)
_COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)
_FUNCTION = re.compile(
    r"^(?P<head>[A-Za-z_](?:[^;{}()#]|\n(?=[\w\t ]))*\([^;{}#]*\))\s*\{$(?P<body>.*?)^\}$", re.M | re.S
)
"""As the kernel's style has them: from the first column to a brace in the first column."""
_CALL = re.compile(r"(?:COMPAT_)?SYSCALL_DEFINE\d\((?P<call>\w+)")
_NAME = re.compile(r"(?P<name>\w+)\s*\(")


def texts(source: Path, file: Path) -> dict[str, str]:
    """Name → text of the functions of a C file, without spaces and comments; none of `__init`."""
    content = _COMMENT.sub("", (source / file).read_text(errors="replace"))
    functions = {}
    for match in _FUNCTION.finditer(content):
        head = match["head"]
        if "__init" in head or "__exit" in head:
            continue
        if call := _CALL.match(head):
            functions[f"__x64_sys_{call['call']}"] = "".join(match[0].split())
        elif name := _NAME.search(head):
            functions[name["name"]] = "".join(match[0].split())
    return functions


def of_directories(source: Path) -> Iterator[Path]:
    """The C files of the six directories."""
    for directory in DIRECTORIES:
        yield from (path.relative_to(source) for path in sorted((source / directory).rglob("*.c")))


def in_image(image: CodeImage, name: str, file: Path) -> str:
    """What the image calls this function of the file; empty where it has none or several of the name."""
    for suffix in ("", ".isra", ".constprop", ".constprop.isra", ".part", ".part.isra"):
        copies = image.functions.get(without_numbers(name + suffix), ())
        if len(copies) == 1 and copies[0].file in {"", file.name}:
            return name + suffix
    return ""


def pools(image: CodeImage, source: Path, older: Path) -> Mapping[str, list[str]]:
    """What is drawn from, by its heading in the table."""
    every, changed = [], []
    for file in of_directories(source):
        before = texts(older, file) if (older / file).is_file() else {}
        for name, text in texts(source, file).items():
            if called := in_image(image, name, file):
                every.append(called)
                if name in before and before[name] != text:
                    changed.append(called)
    return {"all": sorted(set(every)), f"changed since {older.name}": sorted(set(changed))}


def executed(kernel_name: str, uses: tuple[WorkloadUse, ...], names: set[str], runs: Runs) -> set[str]:
    """Which of these functions run in any of the workloads on this kernel."""
    kernel = runs.kernel(kernel_name)
    covered = coverage(kernel, uses, Measurement((), MachineSettings()), runs)
    for label, why in covered.failed.items():
        print(f"{label} does not run: {why}", file=sys.stderr)
    return {name for _, profile in covered.profiles for name in executed_in(profile, names)}


def main() -> None:
    """Print the table."""
    base, older = sys.argv[1], Path(sys.argv[2])
    kernel = build(requested(base, directory=Path.cwd()))
    assert kernel.vmlinux is not None, "what is built keeps it"
    drawn_from = pools(code_image(kernel.vmlinux), debian_source(base.removeprefix("debian:")), older)
    names = {name for pool in drawn_from.values() for name in pool}
    built_in = tuple(WorkloadUse(name=name) for name in dict.fromkeys((*workloads.DEFAULT, *workloads.DISK)))
    with open_store("target/series-coverage.db") as store:
        runs = Runs(store, jobs=1)
        few = executed(kernel.name, built_in, names, runs)
        many = few | executed(kernel.name, tours(), names, runs)
        booted = booted_in((runs.kernel(kernel.name),), Measurement((), MachineSettings()), runs)
    columns = {"built-in workloads": few, "with tours": many, "with the boot": many | (booted or set())}
    print(f"| drawn from | functions | {' | '.join(columns)} | of {DRAWN} drawn | with the boot |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for heading, pool in drawn_from.items():
        shares = [f"{100 * len(ran.intersection(pool)) / len(pool):.1f} %" for ran in columns.values()]
        drawn = [random.Random(seed).sample(pool, DRAWN) for seed in SEEDS]
        counts = [
            ", ".join(str(len(columns[column].intersection(some))) for some in drawn)
            for column in ("with tours", "with the boot")
        ]
        print(f"| {heading} | {len(pool):,} | {' | '.join((*shares, *counts))} |")
        for seed, some in zip(SEEDS, drawn, strict=True):
            left = sorted(set(some) - columns["with the boot"])
            print(f"{heading}, seed {seed}: not executed: {', '.join(left)}", file=sys.stderr)


if __name__ == "__main__":
    main()
