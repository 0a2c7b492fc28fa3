"""Commits that are looked for by name in git trees: what the trees are made of, and what is kept."""

from typing import Any

import pytest
from docs.measured.named_commits_run import STUDIES, patch_of, reduced, subject_of, trees

COMMITS = [(commit, tree["source"]) for tree in trees() for commit in tree["commits"]]
QUESTIONS = [(tree, question) for tree in trees() for question in tree["questions"]]
SHMEM = "shmem: stable directory offsets"


@pytest.mark.parametrize(("commit", "source"), COMMITS)
def test_a_commit_of_a_tree_has_a_subject_and_a_patch_that_takes_it_back(commit: str, source: str) -> None:
    assert subject_of(commit, source)
    assert "\n--- a/" in patch_of(commit, source).read_text(encoding="utf-8")


def test_what_is_looked_for_is_one_of_twenty_commits_or_more_and_something_shows_it() -> None:
    for tree, question in QUESTIONS:
        assert question["commit"][:12] in tree["commits"]
        assert len(set(tree["commits"])) >= 20
        assert "workload" in question or (STUDIES / question["program"]).exists()


def explained(*subjects: str) -> dict[str, Any]:
    measured = [
        {"subject": subject, "effects": [80.0 / place, 84.0 / place], "how": "taken back"}
        for place, subject in enumerate(subjects, start=1)
    ]
    proof = {"value_before": 1000.0, "value_after": 1100.0, "measured": measured}
    proof |= {"workload": "metadata", "builds": 4, "kernels": 5, "seconds": 61.0}
    return {"commits": {"proof": proof}}


@pytest.mark.parametrize(
    ("subjects", "right"),
    [
        (("shmem: stable directory offsets", "mm: tune PCP high automatically"), True),
        (("mm: tune PCP high automatically", "shmem: stable directory offsets"), False),
    ],
)
def test_the_answer_is_the_commit_with_the_largest_share(subjects: tuple[str, ...], right: bool) -> None:
    answer = reduced(explained(*subjects), SHMEM, 21)
    assert (answer["subject"], answer["right"]) == (subjects[0], right)
    assert (answer["share"], answer["builds"], answer["commits"]) == (0.82, 4, 21)
