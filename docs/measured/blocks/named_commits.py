"""docs/explain.md: commits that were looked for by name in git trees, and what the search took."""

from docs.measured.declaration import Block
from docs.measured.measuring import Measuring
from docs.measured.named_commits_run import kept, subject_of, trees
from docs.measured.wording import table

_HEADS = (
    "looked for",
    "of commits",
    "workload",
    "first answer",
    "share",
    "kernels built",
    "CPU time of trials",
)


def _named(measuring: Measuring) -> str:
    del measuring
    answers = kept()
    rows = []
    for tree in trees():
        for question in tree["questions"]:
            commit = question["commit"][:12]
            sought = f"`{commit}` {subject_of(commit, tree['source'])}"
            workload = f"`{question.get('workload') or question['program'].removesuffix('.c')}`"
            answer = answers.get(commit)
            if answer is None:
                rows.append((sought, str(len(tree["commits"])), workload, "not run", "–", "–", "–"))
                continue
            first = "the same" if answer["right"] else answer["subject"]
            share = "–" if answer["share"] is None else f"{answer['share']:.0%}".replace("%", " %")
            seconds = f"{answer['seconds']:.0f} s"
            rows.append(
                (sought, str(answer["commits"]), workload, first, share, str(answer["kernels"]), seconds)
            )
    return table(_HEADS, rows)


BLOCKS = (Block("named-commits", "docs/explain.md", _named, simulated=True),)
