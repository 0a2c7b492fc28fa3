"""The end of a run says what was skipped and why: nothing is left out in silence."""

from collections import Counter

import pytest
from tests.support.outdated_records import is_outdated, outdated_line


class SkippedTests:
    """A plugin; with pytest-xdist the process that is told what all workers did."""

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """A line for the reasons, and one for records that are to be made anew."""
        reasons = [reason_of(report) for report in terminalreporter.stats.get("skipped", ())]
        others = Counter(reason for reason in reasons if not is_outdated(reason))
        if others:
            told = "; ".join(f"{count} {reason}" for reason, count in others.most_common())
            terminalreporter.write_line(f"skipped: {told}")
        if outdated := [reason for reason in reasons if is_outdated(reason)]:
            terminalreporter.write_line(outdated_line(outdated), yellow=True)


def reason_of(report: pytest.TestReport | pytest.CollectReport) -> str:
    """Why a test or a file was skipped, on one line."""
    *_, text = report.longrepr if isinstance(report.longrepr, tuple | list) else (str(report.longrepr),)
    return " ".join(str(text).removeprefix("Skipped: ").split())
