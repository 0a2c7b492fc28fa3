"""`explain --commits`: from two kernels to the commits between them."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from ktrial.bisect.commit_ranking import ranked_commits
from ktrial.cli.command_line import BadOption
from ktrial.cli.console import messages, print_json, say
from ktrial.cli.options import kernel_measurement
from ktrial.cli.options.common import duration
from ktrial.cli.progress import progress
from ktrial.cli.render.explanation import explained_as_json, headline_of
from ktrial.cli.render.next_step import same_command
from ktrial.cli.render.screen import Screen
from ktrial.cli.running.bisection import StepLines
from ktrial.cli.running.explanation import question_of, why
from ktrial.cli.running.preflight import check_first
from ktrial.cli.studies import open_store
from ktrial.errors import KtrialError
from ktrial.experiment.explain import kernel_of_treatment
from ktrial.format import number_format
from ktrial.kernels.build.sources import GIT_PREFIX
from ktrial.kernels.commits import git_tree, named_range, range_between
from ktrial.kernels.symbols import function_files
from ktrial.model.attribution import Attribution
from ktrial.model.commits import CommitList, CommitProof
from ktrial.model.design import FactorKind
from ktrial.model.kernel import Kernel
from ktrial.model.study import Measurement
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
    from ktrial.bisect.commits import CommitGround
    from ktrial.cli.commands.explain import ExplainOptions, ProveOptions
    from ktrial.model.kernel import Build

_ONE_KERNEL = "both treatments boot one kernel: no commit lies between; compare two kernels, or give --range"


@dataclass(frozen=True)
class CommitsBehind:
    """An explanation, and the commits that touch it."""

    question: "AttributionQuestion"
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
    return CommitsBehind(question, attribution, ranked)


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


def proven(behind: CommitsBehind, options: "ExplainOptions", proving: "ProveOptions") -> CommitsBehind:
    """The same, with what its commits were measured to do. Raises BadOption, BisectError and as trials."""
    from ktrial.bisect.commits import CommitGround, CommitSearch

    question, commits = behind.question, behind.commits
    if not commits.ranked:
        raise BadOption("--prove", commits_answer(commits))
    chosen = _chosen(commits, proving.candidates or ())
    budget = duration("--budget", proving.budget) if proving.budget else None
    plain, notes = _plain(question, commits)
    check_first(kind="exact", builds=[plain], similar_builds=True, words=options.words, jobs=proving.jobs)
    measurement = Measurement(
        (question.use,), question.study.machine.model_copy(update={"kernel": ""}), proving.perturbations
    )
    with open_store(options.store) as store:
        runs = kernel_measurement.runs(store, StepLines(messages()), proving.jobs)
        ground = CommitGround(
            commits, plain, runs.resources.builder, runs.observer.progress_of(commits.range)
        )
        say(_plan(ground, len(chosen)))
        search = CommitSearch(
            ground,
            measurement,
            runs,
            chosen,
            budget,
            messages().print,
            lambda proof: print_commits(replace(behind, proof=proof), messages(), most=None),
            notes,
        )
        return replace(behind, proof=search.run())


def check_provable(options: "ExplainOptions", proving: "ProveOptions") -> None:
    """Raise BadOption where commits cannot be measured so: before anything is booted."""
    if options.machine == "exact-parallel" or options.cpus:
        raise BadOption("--prove", "shares are proven on the machine exact")
    if proving.each_alone:
        raise BadOption("--each", "each commit is taken back alone")
    question = question_of(options)
    if question.study.machine.kind != "exact":
        raise BadOption("--prove", "shares are proven on the machine exact")
    for factor in question.study.factors:
        if factor.kind is not FactorKind.KERNEL:
            problem = f"the treatments have {factor.name}, too: commits are proven between two kernels alone"
            raise BadOption("--prove", problem)


def _chosen(commits: CommitList, names: Sequence[str]) -> tuple[str, ...]:
    """The whole names of commits that are to be taken back."""
    chosen = []
    for name in names:
        matching = [row.commit for row in commits.ranked if name and row.commit.startswith(name)]
        if len(matching) != 1:
            problem = f"{name} begins the names of {len(matching)} commits of the list"
            shown = ", ".join(row.short for row in commits.ranked[:SHOWN])
            raise BadOption("--candidates", problem, hint=f"it has {shown}")
        chosen += matching
    return tuple(chosen)


def _plain(question: "AttributionQuestion", commits: CommitList) -> "tuple[Build, tuple[str, ...]]":
    """How the range's first end is built, and what has to be known of that. Raises KernelError."""
    from ktrial.kernels.build.requests import requested
    from ktrial.model.study import kernel_name

    source = f"{GIT_PREFIX}{commits.directory}@{commits.before}"
    sides = (kernel_name(question.study, side) for side in (question.before, question.after))
    builds = [kernel_of_treatment(question, name).origin.build for name in sides]
    own = [build for build in builds if build and build.source.startswith(GIT_PREFIX)]
    if not own:
        plain = requested(source, directory=Path.cwd())
        words = "the kernels that were compared are not built from the tree: both ends are built in the"
        return plain, (f"{words} configuration {plain.config}, and shares are of their difference",)
    plain = own[-1].model_copy(update={"source": source})
    differ = len({build.model_copy(update={"source": "", "since": ""}).key for build in own}) > 1
    note = "the two kernels are configured or patched differently: both ends are built as the second"
    return plain, ((note,) if differ or len(own) == 1 else ())


def _plan(ground: "CommitGround", chosen: int) -> str:
    """What is going to be measured, at most."""
    from ktrial.bisect.commits import most_kernels
    from ktrial.kernels.build.make import build_seconds

    first, more = most_kernels(ground)
    count = 2 + chosen if chosen else first
    text = f"both ends and {number_format.counted(count - 2, 'commit')} taken back"
    if more and not chosen:
        text += f"; where that leaves much, about {more} kernels more on the way through the range"
    seconds = build_seconds()
    each = f"; a build takes about {number_format.duration(seconds)}, by past ones" if seconds else ""
    return f"proving: {text}{each}"


def print_commits(behind: CommitsBehind, console: "Console", *, most: int | None) -> None:
    """The commits that touch most, what was measured of them, and the answer last."""
    commits, proof = behind.commits, behind.proof
    screen = Screen(console, whole=most is not None, more=same_command("-v"))
    screen.title(headline_of(behind.attribution), summary(commits))
    if proof:
        screen.rows(proof_table(proof), noun="measured commit")
        screen.lines(list(proof_notes(proof)), "note", least=2)
        screen.leave_out(len(commits.ranked), "ranked commit")
    else:
        shown = most or SHOWN
        screen.rows(commits_table(commits, shown), noun="commit")
        screen.leave_out(max(0, len(commits.ranked) - shown), "commit")
    screen.lines(list(commit_notes(commits)), "note on the commits", least=1)
    next_step = "" if proof or not commits.ranked else same_command("--prove")
    screen.print(proof_answer(proof) if proof else commits_answer(commits), next_step=next_step)


def print_commits_as_json(behind: CommitsBehind) -> None:
    """The explanation, with `commits`."""
    print_json(
        {
            **explained_as_json(behind.attribution, {}, None),
            "commits": commits_as_json(behind.commits, behind.proof),
        }
    )
