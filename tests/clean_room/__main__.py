"""Tries ktrial as a newcomer would: on bare Debian, as root and as an ordinary user. README.md tells more.

python -m tests.clean_room [--system S] [--user U] [--part P] [--again] [--list] [--table]
The exit status is 1 where a part failed, 2 where this host cannot have rooms.
"""

import argparse
import itertools
import json
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from tests.clean_room.room import (
    NEWCOMER,
    CommandFailed,
    Room,
    RoomError,
    base_of,
    make_room,
    problem,
    used_megabytes,
)

ROOT = Path(__file__).resolve().parents[2]
WORK = ROOT / "target" / "clean-room"
SYSTEMS = {"bookworm": "Debian 12", "trixie": "Debian 13", "testing": "Debian testing"}
USERS = (NEWCOMER, "root")
KEPT_LINES = 25


@dataclass
class Result:
    """What one part was, for one user of one system."""

    commit: str
    system: str
    user: str
    part: str
    passed: bool
    error: str = ""
    note: str = ""
    hints: list[str] = field(default_factory=list)
    cpu_seconds: float = 0.0
    seconds: float = 0.0
    fetched_megabytes: float = 0.0
    disk_megabytes: float = 0.0
    tmp_megabytes: float = 0.0
    tests: str = ""
    """The last line of pytest."""
    skips: list[str] = field(default_factory=list)


def demo(room: Room, result: Result) -> None:
    """README's first command, and the one that it prints."""
    room.take(ROOT)
    room.run("make demo", f"{room.home}/ktrial")
    text = room.run(".venv/bin/ktrial show", f"{room.home}/ktrial")
    expect(r"^fork +\d.*✗ worse", text)


def tests(room: Room, result: Result) -> None:
    """What CONTRIBUTING says to run first."""
    room.take(ROOT)
    text = ""  # also where Ctrl-C ends it
    try:
        text = room.run("make test", f"{room.home}/ktrial")
    except CommandFailed as error:
        text = error.text
        raise
    finally:
        result.tests = next(iter(re.findall(r"^.*\d+ passed.* in .*$", text, re.MULTILINE)[-1:]), "")
        result.skips = re.findall(r"^(skipped: .*|outdated records: .*)$", text, re.MULTILINE)


def wheel(room: Room, result: Result) -> None:
    """The wheel by pipx, README's system packages, and a program that every system has."""
    install_ktrial(room)
    text = room.run("ktrial compare 6.1 6.12 --perturbations 2 -- ls /usr/share")
    expect(r"^ls +\d.*(?:worse|better|equivalent|inconclusive)", text)
    room.run("ktrial doctor")


def kernel(room: Room, result: Result) -> None:
    """A kernel from Debian's source, and a trial of it. The only help is what ktrial itself prints."""
    install_ktrial(room)
    room.run("ktrial kernel build debian:linux-source-6.1 --name plain")
    kernels = "--kernel debian:6.1 --kernel build:plain"
    text = room.run(f"ktrial compare {kernels} --perturbations 2 --workload pipe")
    expect(r"^pipe +\d.*(?:worse|better|equivalent|inconclusive)", text)


PARTS: dict[str, Callable[[Room, Result], None]] = {
    "demo": demo,
    "wheel": wheel,
    "kernel": kernel,
    "test": tests,
}


def install_ktrial(room: Room) -> None:
    """By README's words: pipx, and the system packages that it names."""
    built = built_wheel()
    room.run_as_root("apt-get update -q && apt-get install -y --no-install-recommends pipx")
    room.run_as_root(f"apt-get update -q && {readme_line()}")
    room.put(built, built.name)
    room.run(f"pipx install ./{built.name}")
    room.path.append(f"{room.home}/.local/bin")


def readme_line() -> str:
    """The command with which README installs system packages."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    line = r"apt-get update && (?:sudo )?apt-get install (--no-install-recommends .*)$"
    match = re.search(line, readme, re.MULTILINE)
    if not match:
        raise RoomError(f"README.md has no line like {line}")
    return f"apt-get install -y {match[1]}"


def expect(pattern: str, text: str) -> None:
    """Raise CommandFailed where no line is like this."""
    if not re.search(pattern, text, re.MULTILINE):
        raise CommandFailed(f"no line is like {pattern}", 0, text)


def built_wheel() -> Path:
    """The wheel of this commit, built from a clone."""
    place = WORK / "wheels" / commit()
    if not list(place.glob("*.whl")):
        clone = place / "clone"
        subprocess.run(["rm", "-rf", str(place)], check=True)
        subprocess.run(["git", "clone", "--quiet", "--no-hardlinks", str(ROOT), str(clone)], check=True)
        make = ["make", "-C", str(clone), "wheel"]
        done = subprocess.run(make, capture_output=True, text=True, check=False)
        if done.returncode:
            raise RoomError(f"make wheel fails here: {done.stderr[-600:]}")
        (made,) = (clone / "dist").glob("*.whl")
        made.rename(place / made.name)
        subprocess.run(["rm", "-rf", str(clone)], check=True)
    (path,) = place.glob("*.whl")
    return path


def commit() -> str:
    """The commit that is tried."""
    done = subprocess.run(
        ["git", "-C", str(ROOT), "rev-parse", "HEAD"], capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def attempt(system: str, user: str, part: str) -> Result:
    """Try one part in a fresh room. The room of a part that failed is kept, to be looked at."""
    name = f"{system}-{user}-{part}"
    archive, note = base_of(system, WORK / "bases")
    log = WORK / "logs" / f"{name}.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    log.unlink(missing_ok=True)
    room = make_room(archive, WORK / "rooms" / name, user, log)
    result = Result(commit(), system, user, part, passed=True, note=note)
    before = used_megabytes(room.root)
    try:
        PARTS[part](room, result)
    except CommandFailed as error:
        result.passed, result.error = False, str(error)
        last = error.text.strip().splitlines()[-KEPT_LINES:]
        print("\n".join(f"    {line}" for line in last), file=sys.stderr)
    room.cost.disk_megabytes = used_megabytes(room.root) - before
    result.hints = room.hints
    for figure, value in asdict(room.cost).items():
        setattr(result, figure, value)
    if result.passed:
        room.remove()
    return result


def results() -> Iterator[Result]:
    """All that were tried, oldest first."""
    path = WORK / "results.jsonl"
    for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else ():
        yield Result(**json.loads(line))


def newest() -> dict[tuple[str, str, str], Result]:
    """The last result of each part."""
    return {(result.system, result.user, result.part): result for result in results()}


def line_of(result: Result) -> str:
    """One result, for people."""
    outcome = "passed" if result.passed else f"FAILED: {result.error}"
    figures = (
        f"{result.cpu_seconds:.0f} s of CPU, {result.seconds:.0f} s; "
        f"{result.fetched_megabytes:.0f} MB fetched, {result.disk_megabytes:.0f} MB of disk, "
        f"{result.tmp_megabytes:.0f} MB of /tmp"
    )
    more = [result.tests, *result.skips]
    more += [f"hint followed: {hint}" for hint in result.hints]
    more += [result.note]
    whole = f"{SYSTEMS[result.system]}, {result.user}, {result.part}: {outcome} ({figures})"
    return "\n    ".join([whole, *filter(None, more)])


def table(shown: Iterable[Result]) -> str:
    """The results as Markdown."""
    columns = ["system", "user", "part", "outcome", "CPU, s", "wall, s"]
    columns += ["MB fetched", "MB of disk", "MB of /tmp", "tests", "commit"]
    rows = [f"| {' | '.join(columns)} |", "| --- " * len(columns) + "|"]
    for result in shown:
        outcome = "passed" if result.passed else f"failed: {result.error}"
        figures = (result.cpu_seconds, result.seconds, result.fetched_megabytes, result.disk_megabytes)
        cells = [SYSTEMS[result.system], result.user, result.part, outcome]
        cells += [f"{figure:.0f}" for figure in (*figures, result.tmp_megabytes)]
        rows.append("| " + " | ".join([*cells, result.tests.strip("= "), result.commit[:10]]) + " |")
    return "\n".join(rows)


def main(words: Sequence[str] | None = None) -> int:
    """Try what is left, and return the exit status."""
    options = parsed(words)
    chosen = list(itertools.product(options.part, options.system, options.user))
    if options.table:
        last = newest()
        keys = ((system, user, part) for part, system, user in chosen)
        print(table(last[key] for key in keys if key in last))
        return 0
    if why := problem():
        print(f"clean room: {why}", file=sys.stderr)
        return 2
    if subprocess.run(["git", "-C", str(ROOT), "diff", "--quiet", "HEAD"], check=False).returncode:
        print("clean room: what is not committed is not tried", file=sys.stderr)
    done = {
        key
        for key, result in newest().items()
        if result.passed and result.commit == commit() and not options.again
    }
    failed = 0
    for part, system, user in chosen:
        if (system, user, part) in done:
            print(f"{SYSTEMS[system]}, {user}, {part}: passed before", flush=True)
            continue
        if options.list:
            print(f"{SYSTEMS[system]}, {user}, {part}: left", flush=True)
            continue
        print(f"{SYSTEMS[system]}, {user}, {part}: begins; log: target/clean-room/logs", flush=True)
        result = attempt(system, user, part)
        with (WORK / "results.jsonl").open("a", encoding="utf-8") as file:
            file.write(json.dumps(asdict(result), ensure_ascii=False) + "\n")
        print(line_of(result), flush=True)
        failed += not result.passed
    return 1 if failed else 0


def parsed(words: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tests.clean_room",
        description="Tries ktrial on bare Debian. What passed with this commit is not tried again.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    for name, values in (("system", SYSTEMS), ("user", USERS), ("part", PARTS)):
        every = list(values)
        parser.add_argument(f"--{name}", nargs="+", choices=every, default=every, help="only of these")
    parser.add_argument("--again", action="store_true", help="also what passed before")
    parser.add_argument("--list", action="store_true", help="print what is left, and try nothing")
    parser.add_argument("--table", action="store_true", help="print the last results as Markdown")
    return parser.parse_args(words)


if __name__ == "__main__":
    # A shell's background job ignores Ctrl-C; SIGTERM ends it as well.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.default_int_handler)
    try:
        sys.exit(main())
    except RoomError as error:
        print(f"clean room: {error}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        print("clean room: interrupted; the same command begins with the part under way", file=sys.stderr)
        sys.exit(130)
