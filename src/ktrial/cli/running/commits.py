"""`explain --commits`: from two kernels to the commits between them."""

from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ktrial.bisect.commit_ranking import ranked_commits
from ktrial.cli.command_line import BadOption
from ktrial.cli.console import print_json
from ktrial.cli.progress import progress
from ktrial.cli.render.explanation import explained_as_json, headline_of
from ktrial.cli.render.next_step import same_command
from ktrial.cli.render.screen import Screen
from ktrial.cli.running.explanation import question_of, why
from ktrial.errors import KtrialError
from ktrial.experiment.explain import kernel_of_treatment
from ktrial.kernels.commits import git_tree, named_range, range_between
from ktrial.kernels.symbols import function_files
from ktrial.model.attribution import Attribution
from ktrial.model.commits import CommitList, CommitProof
from ktrial.model.kernel import Kernel
from ktrial.report.commits import (
    SHOWN,
    commit_notes,
    commits_answer,
    commits_as_json,
    commits_table,
    proof_answer,
    proof_notes,
    proof_table,
    summary,
)

if TYPE_CHECKING:
    from rich.console import Console

    from ktrial.analysis.attribution.question import AttributionQuestion
    from ktrial.cli.commands.explain import ExplainOptions

_ONE_KERNEL = "both treatments boot one kernel: no commit lies between; compare two kernels, or give --range"


@dataclass(frozen=True)
class CommitsBehind:
    """An explanation, and the commits that touch it."""

    attribution: Attribution
    commits: CommitList
    proof: CommitProof | None = None


def listed(options: "ExplainOptions", tree: str, range_: str | None) -> CommitsBehind:
    """The commits that touch the difference. Raises BadOption, KernelUsageError before anything is booted;
    and as `explanation.why`.
    """
    directory = git_tree(tree)
    question = question_of(options)
    names = _kernels(question)
    if names[0] == names[1] and not range_:
        raise BadOption("--commits", _ONE_KERNEL)
    with progress() as observer:

        def kernel(name: str) -> Kernel:
            return kernel_of_treatment(question, name, observer.progress_of(name))

        commits = named_range(directory, range_) if range_ else range_between(directory, names, kernel)
    attribution = why(options)[0]
    with progress() as observer:
        ranked = ranked_commits(
            attribution, commits, _compiled(question, names), observer.progress_of(commits.text)
        )
    return CommitsBehind(attribution, ranked)


def _kernels(question: "AttributionQuestion") -> tuple[str, str]:
    from ktrial.model.study import kernel_name

    first, second = (kernel_name(question.study, side) for side in (question.before, question.after))
    return first, second


def _compiled(question: "AttributionQuestion", names: tuple[str, str]) -> frozenset[str]:
    """Functions that the kernels have code of their own for; nothing of a kernel that is gone."""
    functions: set[str] = set()
    for name in names:
        with suppress(KtrialError):
            functions |= function_files(kernel_of_treatment(question, name)).functions
    return frozenset(functions)


def print_commits(behind: CommitsBehind, console: "Console", *, most: int | None) -> None:
    """The commits that touch most, what was measured of them, and the answer last."""
    commits, proof = behind.commits, behind.proof
    screen = Screen(console, whole=most is not None, more=same_command("-v"))
    screen.title(headline_of(behind.attribution), summary(commits))
    if proof:
        screen.rows(proof_table(proof), noun="measured commit")
        screen.lines(list(proof_notes(proof)), "note", least=2)
        screen.leave_out(len(commits.ranked), "commit that touches it")
    else:
        shown = most or SHOWN
        screen.rows(commits_table(commits, shown), noun="commit")
        screen.leave_out(max(0, len(commits.ranked) - shown), "commit")
    screen.lines(list(commit_notes(commits)), "note on the commits", least=1)
    screen.print(proof_answer(proof) if proof else commits_answer(commits))


def print_commits_as_json(behind: CommitsBehind) -> None:
    """The explanation, with `commits`."""
    print_json(
        {
            **explained_as_json(behind.attribution, {}, None),
            "commits": commits_as_json(behind.commits, behind.proof),
        }
    )
