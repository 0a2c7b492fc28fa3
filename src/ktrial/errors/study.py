"""Errors about study files: every one names the file, the key, what was found and what is allowed."""

from ktrial.errors.base import KtrialError


class StudyError(KtrialError):
    """{where}: {problem}"""

    exit_code = 2
