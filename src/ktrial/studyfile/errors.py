"""Errors about study files: every one names the file, the key, what was found and what is allowed."""

from ktrial.errors import KtrialError


class StudyError(KtrialError):
    """{where}: {problem}"""

    exit_code = 2


class StudyUnreadable(StudyError):
    """Study {where} cannot be read: {problem}."""

    hint = "those that come with ktrial need no file: ktrial run --list"


class StudySyntaxError(StudyError):
    """{where}: this is not TOML: {problem}"""

    hint = (
        "text stands in quotes, and a table in braces stays on one line; "
        "how a study file is written: docs/studies.md"
    )


class StudyEmpty(StudyError):
    """{where}: the study is empty."""

    hint = (
        'the smallest study: workloads = ["syscall"] and, below it, [factors.kernel] with '
        'levels = ["debian:6.1", "debian:6.12"]'
    )


class StudyMistake(StudyError):
    """{where}: {problem}"""

    hint = "what each key means and may be: docs/studies.md"


class StudyMistakes(StudyError):
    """{where}: {count} mistakes:{problem}"""

    hint = "what each key means and may be: docs/studies.md"


class PatchNotGiven(StudyError):
    """{where}: factors.{factor}.levels: the level "?" is a patch that you name."""

    hint = "ktrial run {where} {option}"


class PatchNotAwaited(StudyError):
    """{where}: the patch {patch} has no place in it: {problem}."""

    hint = 'the study file says where it goes: levels = ["", "?"] in a factor of kind "patch"'
