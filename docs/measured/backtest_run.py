"""Remakes the public reports of backtest.toml, one by one, by the route that `ktrial check` takes by itself.

    .venv/bin/python -m docs.measured.backtest_run RESULTS [COMMIT...]    run them, and keep what came of them
    .venv/bin/python docs/write_numbers.py backtest-in-short backtest-matrix backtest-cases

RESULTS is a directory for the store, so that the same command goes on where it stopped, and for what ktrial
printed. studies/backtest/cases.toml says what each is measured by, and which functions its commit changed.
The first kernel of each source takes the most: half an hour of two CPUs. Why a case gave no answer is kept.
"""

import json
import os
import subprocess
import sys
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from docs.measured.backtest_result import failed, keep, listed, reduced
from docs.measured.pages import ROOT

STUDIES = ROOT / "studies" / "backtest"
_KTRIAL = str(ROOT / ".venv" / "bin" / "ktrial")
_ANSWERED = (0, 1, 125)
"""Exit codes of `check` that are an answer about the kernel."""


def cases() -> dict[str, dict[str, Any]]:
    """The start of a commit's number → how it is measured; without those that nobody has prepared."""
    table: dict[str, dict[str, Any]] = tomllib.loads((STUDIES / "cases.toml").read_text(encoding="utf-8"))
    return table


def patch_of(number: str) -> Path:
    """The patch that takes the commit back, or puts it there."""
    return STUDIES / "patches" / f"{number}.patch"


class CaseFailed(Exception):
    """A build or a check did not end with an answer; the text says why."""


def _number(change: Mapping[str, Any]) -> str:
    return str(change["commit"])[:12]


def build(source: str, case: Mapping[str, Any], place: Path, *patches: Path) -> str:
    """The name of the source's kernel with the patches, which is built if need be. Raises CaseFailed."""
    arguments = [argument for patch in patches for argument in ("--patch", str(patch))]
    arguments += [argument for option in case.get("options", ()) for argument in ("--option", option)]
    answer = _run(place, "kernel", "build", source, *arguments, "--json")
    return str(json.loads(answer)["name"])


def measured_by(case: Mapping[str, Any]) -> list[str]:
    """The last arguments of the check: a workload, or a command that is captured."""
    return [case["workload"]] if "workload" in case else ["--", *case["command"]]


def remake(change: Mapping[str, Any], case: Mapping[str, Any], results: Path) -> dict[str, Any]:
    """What ktrial says of one report. Raises CaseFailed."""
    number = _number(change)
    place = results / number
    place.mkdir(parents=True, exist_ok=True)
    plain = build(change["source"], case, place)
    patched = build(change["source"], case, place, patch_of(number))
    applied = case.get("remade", change["remade"]) == "apply"
    kernels = (plain, patched) if applied else (patched, plain)
    outcome = _measured(kernels, case, place, results)
    if telling := outcome.pop("telling"):
        followed = _measured(kernels, {**case, "workload": telling[0]}, place / "found", results)
        outcome["found"] = {name: followed[name] for name in ("workload", "one", "several", "verdict")}
    return outcome


def _measured(
    kernels: tuple[str, str], case: Mapping[str, Any], place: Path, results: Path
) -> dict[str, Any]:
    place.mkdir(parents=True, exist_ok=True)
    # Options before the command, which takes all that follows it.
    route = (*kernels, "--json", *measured_by(case))
    check = json.loads(_kept_output(place / "check.json", results, "check", "--find", *route))
    why = json.loads(_kept_output(place / "explain.json", results, "explain", "--no-values", *route))
    return reduced(check, why, case) | {"telling": check["telling"]}


def _kept_output(file: Path, results: Path, *arguments: str) -> str:
    text = _run(file.parent, *arguments, store=results / "store.db")
    file.write_text(text, encoding="utf-8")
    return text


def _run(place: Path, *arguments: str, store: Path | None = None) -> str:
    """What `ktrial ARGUMENTS` prints on standard output."""
    environment = os.environ | ({"KTRIAL_STORE": str(store)} if store else {})
    with (place / "log").open("a", encoding="utf-8") as log:
        log.write(f"ktrial {' '.join(arguments)}\n")
        log.flush()
        done = subprocess.run(
            [_KTRIAL, *arguments],
            cwd=place,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            check=False,
        )
    if done.returncode not in (_ANSWERED if arguments[0] == "check" else (0,)):
        lines = (place / "log").read_text(encoding="utf-8").splitlines()
        errors = [line for line in lines if line.startswith("ktrial: error: ")] or lines
        raise CaseFailed(errors[-1].removeprefix("ktrial: error: "))
    return done.stdout


def main(arguments: Sequence[str]) -> int:
    """Run them; what came of each is kept as it ends."""
    if not arguments:
        print("usage: python -m docs.measured.backtest_run RESULTS [COMMIT...]", file=sys.stderr)
        return 2
    results = Path(arguments[0]).resolve()
    known = cases()
    numbers = list(arguments[1:]) or [number for number, case in known.items() if "not_run" not in case]
    if unknown := [number for number in numbers if number not in known]:
        print(f"studies/backtest/cases.toml has no {', '.join(unknown)}", file=sys.stderr)
        return 2
    changes = {_number(change): change for change in listed()}
    for number in numbers:
        try:
            outcome = remake(changes[number], known[number], results)
        except CaseFailed as error:
            outcome = failed(str(error))
        keep(number, outcome)
        print(f"{number}: {json.dumps(outcome, ensure_ascii=False)}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
