"""What looks at followed kernels say: in a sentence, as Markdown, and as JSON."""

from collections.abc import Sequence
from typing import Any

from ktrial.cli.render import regression_check
from ktrial.experiment.watch import Look, News, worst_of
from ktrial.report.markdown.markup import code, prose


def sentence(one: Look) -> str:
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


def as_markdown(looks: Sequence[Look], top: int) -> str:
    """GitHub-flavoured Markdown: a list, then a part for each new kernel."""
    lines = [f"- {code(one.target)}: {prose(sentence(one).partition(': ')[2])}" for one in looks]
    parts = [f"## ktrial watch: {worst_of(looks).value}", "\n".join(lines)]
    parts += [regression_check.as_markdown(one.check, top).rstrip("\n") for one in looks if one.check]
    return "\n\n".join(parts) + "\n"


def as_json(looks: Sequence[Look]) -> dict[str, Any]:
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
            }
            for one in looks
        ],
    }
