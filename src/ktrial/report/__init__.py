"""Pictures and tables of a study: HTML for people, Markdown for pull requests, CSV for other programs.

Importing this package costs next to nothing: a function imports what it needs to draw and format.
"""

from ktrial.model.record import StudyRecord

__all__ = ["csv", "html", "markdown", "samples_csv"]


def html(record: StudyRecord) -> str:
    """One self-contained HTML page, readable without ktrial and without a network.

    The same record yields the same text, to the last byte.
    """
    from ktrial.report.as_html import page

    return page(record)


def markdown(record: StudyRecord) -> str:
    """GitHub-flavoured Markdown for a pull request: the answer, the table, and the rest folded."""
    from ktrial.report.as_markdown import text

    return text(record)


def csv(record: StudyRecord) -> str:
    """One row a comparison, with a header row, as RFC 4180 has it. Numbers carry all their digits."""
    from ktrial.report.as_csv import comparisons

    return comparisons(record)


def samples_csv(record: StudyRecord) -> str:
    """One row a sample, with its trial's treatment, perturbation and outcome, as RFC 4180 has it."""
    from ktrial.report.as_csv import samples

    return samples(record)
