"""What looks at followed kernels say: in a sentence, as Markdown, and as JSON."""

from collections.abc import Mapping, Sequence
from typing import Any

from ktrial.cli.render import regression_check, series
from ktrial.experiment.watch import News, TargetLook, worst_of
from ktrial.format.sanitize import one_line
from ktrial.report.markdown import series as markdown
from ktrial.report.markdown.markup import code, prose
from ktrial.report.text import series as text
from ktrial.series.commit_ranges import CommitsBetween


def sentence(one: TargetLook) -> str:
    """One target, in one line."""
    match one.news:
        case News.FIRST:
            return f"{one.target}: first look, {one.kernel}: nothing to compare with yet."
        case News.UNCHANGED:
            return f"{one.target}: nothing new, still {one.kernel}."
        case News.NOT_HAD:
            return f"{one.target}: not to be had: {one.problem.rstrip('.')}."
        case _:
            verdict = regression_check.answer(one.check) if one.check else f"Not compared: {one.problem}."
            return f"{one.target}: {one.kernel} after {one.before}: {verdict}"


def commits_as_text(commits: CommitsBetween, top: int) -> str:
    """What the commits between two looks cost, or why nobody knows."""
    if commits.result is None:
        return f"The commits between were not measured: {one_line(commits.problem)}.\n"
    return text.as_text(commits.result, commits.command, top)


def as_markdown(looks: Sequence[TargetLook], top: int, between: Mapping[str, CommitsBetween]) -> str:
    """GitHub-flavoured Markdown: a list, then a part for each new kernel."""
    lines = [f"- {code(one.target)}: {prose(sentence(one).partition(': ')[2])}" for one in looks]
    parts = [f"## ktrial watch: {worst_of(looks).value}", "\n".join(lines)]
    for one in looks:
        if one.check:
            parts.append(regression_check.as_markdown(one.check, top).rstrip("\n"))
        if one.target in between:
            parts.append(_commits_as_markdown(between[one.target], top).rstrip("\n"))
    return "\n\n".join(parts) + "\n"


def _commits_as_markdown(commits: CommitsBetween, top: int) -> str:
    if commits.result is None:
        return prose(commits_as_text(commits, top))
    return markdown.as_markdown(commits.result, commits.command, top)


def as_json(looks: Sequence[TargetLook], between: Mapping[str, CommitsBetween]) -> dict[str, Any]:
    """What `watch --json` prints; docs/history.md names every field."""
    return {
        "decision": worst_of(looks).value,
        "targets": [
            {
                "target": one.target,
                "news": one.news.value,
                "kernel": one.kernel,
                "before": one.before,
                "decision": one.decision.value,
                "problem": one.problem,
                "check": regression_check.as_json(one.check) if one.check else None,
                "commits": _commits_as_json(between[one.target]) if one.target in between else None,
            }
            for one in looks
        ],
    }


def _commits_as_json(commits: CommitsBetween) -> dict[str, Any]:
    result = series.as_json(commits.result, commits.command) if commits.result else None
    return {"command": commits.command, "problem": commits.problem, "series": result}
