"""Looks for commits by name in git trees as a user would: `ktrial explain --commits git:TREE --prove`.

    .venv/bin/python -m docs.measured.named_commits_run RESULTS [COMMIT...]    run them, keep answers
    .venv/bin/python docs/write_numbers.py named-commits

Mainline's whole history cannot be had everywhere. studies/named_commits/trees.toml says which commits are
taken back from a source package of Debian's, which `ktrial kernel build` has fetched, and put back one by
one: RESULTS has these trees, and the store. Of each question the first answer is kept: which commit has the
largest share, and whether it is the one that mainline has under that number.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from docs.measured.pages import ROOT

from ktrial.installation import cache_directory

STUDIES = ROOT / "studies" / "named_commits"
_KEPT = ROOT / "docs" / "measured" / "named_commits.json"
_KTRIAL = str(ROOT / ".venv" / "bin" / "ktrial")
_SUBJECT = re.compile(r'([0-9a-f]{12}) \("(.*)"\)\.$')
_NOBODY = {
    f"GIT_{role}_{part}": "nobody@example.org"
    for role in ("AUTHOR", "COMMITTER")
    for part in ("NAME", "EMAIL")
}


def trees() -> list[dict[str, Any]]:
    """The trees, each with its commits in mainline's order, and its questions."""
    text = (STUDIES / "trees.toml").read_text(encoding="utf-8")
    made: list[dict[str, Any]] = tomllib.loads(text)["trees"]
    return made


def patch_of(commit: str, source: str) -> Path:
    """What takes the commit back from the source. Raises StopIteration where nothing does."""
    places = (STUDIES / "patches" / source, ROOT / "studies" / "backtest" / "patches")
    return next(file for place in places if (file := place / f"{commit[:12]}.patch").exists())


def subject_of(commit: str, source: str) -> str:
    """The commit's subject, which the first line of its patch has."""
    head = patch_of(commit, source).read_text(encoding="utf-8").partition("\n")[0]
    match = _SUBJECT.search(head)
    assert match, head
    return match[2]


def kept() -> dict[str, dict[str, Any]]:
    """The start of a commit's number → what came of the search for it."""
    answers: dict[str, dict[str, Any]] = (
        json.loads(_KEPT.read_text(encoding="utf-8")) if _KEPT.exists() else {}
    )
    return answers


def keep(commit: str, answer: Mapping[str, Any]) -> None:
    """Put what came of a search into the file."""
    answers = kept() | {commit[:12]: dict(answer)}
    _KEPT.write_text(json.dumps(answers, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def reduced(explained: Mapping[str, Any], subject: str, count: int) -> dict[str, Any]:
    """Of all that `explain --commits --prove --json` printed: what the page needs.

    `subject`: of the commit that is looked for. `count`: how many commits lie between the two ends.
    """
    proof = explained["commits"]["proof"]
    first = proof["measured"][0]
    difference = proof["value_after"] - proof["value_before"]
    effects = first["effects"]
    effect = sum(effects) / len(effects) if effects else 0.0
    return {
        "subject": first["subject"],
        "right": first["subject"] == subject,
        "workload": proof["workload"],
        "commits": count,
        "before": proof["value_before"],
        "after": proof["value_after"],
        "share": effect / difference if difference else None,
        "builds": proof["builds"],
        "kernels": proof["kernels"],
        "seconds": proof["seconds"],
        "how": first["how"],
    }


def make_tree(tree: Mapping[str, Any], place: Path) -> None:
    """A git tree in `place` with the tags base and tip. Raises CalledProcessError if a patch fails."""
    if place.exists():
        return
    (source,) = [
        path for path in (cache_directory() / "sources").glob(f"{tree['source']}_*") if path.is_dir()
    ]
    unfinished = place.with_suffix(".unfinished")
    shutil.rmtree(unfinished, ignore_errors=True)
    shutil.copytree(source, unfinished, symlinks=True)
    _git(unfinished, "init", "--quiet")
    _git(unfinished, "add", "--all", "--force", ".")
    states = [_git(unfinished, "write-tree")]
    for commit in reversed(tree["commits"]):
        _git(unfinished, "apply", "--index", str(patch_of(commit, tree["source"])))
        states.insert(0, _git(unfinished, "write-tree"))
    parent = _git(
        unfinished, "commit-tree", states[0], "-m", f"{source.name}, without the commits that follow"
    )
    _git(unfinished, "tag", "base", parent)
    numbers = {question["commit"][:12]: question["commit"] for question in tree["questions"]}
    for commit, state in zip(tree["commits"], states[1:], strict=True):
        message = f"{subject_of(commit, tree['source'])}\n\ncommit {numbers.get(commit, commit)} upstream.\n"
        parent = _git(unfinished, "commit-tree", state, "-p", parent, "-m", message)
    _git(unfinished, "tag", "tip", parent)
    _git(unfinished, "reset", "--quiet", "--hard", "tip")
    unfinished.rename(place)


def _git(place: Path, *arguments: str) -> str:
    done = subprocess.run(
        ["git", "-C", str(place), *arguments],
        env=os.environ | _NOBODY,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip()


def search(tree: Mapping[str, Any], question: Mapping[str, Any], results: Path) -> dict[str, Any]:
    """What ktrial says: from the first end to the last, as a user asks. Raises CalledProcessError."""
    place = results / tree["source"]
    make_tree(tree, place)
    workload = (
        [question["workload"]] if "workload" in question else ["--", _compiled(question["program"], results)]
    )
    ends = (f"git:{place}@base", f"git:{place}@tip")
    done = subprocess.run(
        [_KTRIAL, "explain", *ends, "--commits", f"git:{place}", "--prove", "--json", *workload],
        cwd=results,
        env=os.environ | {"KTRIAL_STORE": str(results / "store.db")},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    (results / f"{question['commit'][:12]}.json").write_text(done.stdout, encoding="utf-8")
    subject = subject_of(question["commit"], tree["source"])
    return reduced(json.loads(done.stdout), subject, len(tree["commits"]))


def _compiled(program: str, results: Path) -> str:
    made = results / Path(program).stem
    subprocess.run(["gcc", "-O2", "-static", "-o", str(made), str(STUDIES / program)], check=True)
    return str(made)


def main(arguments: Sequence[str]) -> int:
    """Run them; what came of each is kept as it ends."""
    if not arguments:
        print("usage: python -m docs.measured.named_commits_run RESULTS [COMMIT...]", file=sys.stderr)
        return 2
    results = Path(arguments[0]).resolve()
    results.mkdir(parents=True, exist_ok=True)
    for tree in trees():
        for question in tree["questions"]:
            if len(arguments) == 1 or question["commit"][:12] in arguments[1:]:
                answer = search(tree, question, results)
                keep(question["commit"], answer)
                print(f"{question['commit'][:12]}: {json.dumps(answer, ensure_ascii=False)}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
