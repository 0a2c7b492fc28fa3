"""Errors of bisections."""

from ktrial.errors import KtrialError


class BisectError(KtrialError):
    """The bisection came to nothing: an end has no numbers, or two candidates are of different machines."""


class BadBisection(BisectError):
    """What is to be compared is not there, does not differ, or cannot be searched."""

    exit_code = 2


class BadKnobRange(BadBisection):
    """A knob that has not two values."""

    hint = "write --knob vm.overcommit_ratio=50..80, once for each knob; or --from FILE --to FILE"

    def __init__(self, text: str, problem: str) -> None:
        super().__init__(f"'{text}' is no knob with two values: {problem}.")


class BadKnobFile(BadBisection):
    """A file of settings that cannot be used."""

    hint = "write a line NAME = VALUE for each knob, as in sysctl.conf"

    def __init__(self, path: object, problem: object) -> None:
        super().__init__(f"The file {path} cannot be used: {problem}.")


class BadSeries(BadBisection):
    """A series of patches that cannot be used."""

    hint = "give a directory of *.patch files (applied in the order of their names), or a quilt series file"

    def __init__(self, path: object, problem: object) -> None:
        super().__init__(f"The series {path} cannot be used: {problem}.")
