"""Errors about bisections: what is to be compared is not there, or cannot be searched."""

from ktrial.errors import KtrialError


class BisectError(KtrialError):
    """The bisection cannot be done: {problem}"""

    exit_code = 2


class NothingDiffers(BisectError):
    """{before} and {after} do not differ in any {what}: there is nothing to search."""

    hint = "{advice}"


class EndUnresolved(BisectError):
    """{name} cannot be measured: {problem}."""

    hint = "both ends have to build, boot and run the workloads; only what lies between may fail"
    exit_code = 1


class CandidatesIncomparable(BisectError):
    """The candidates must not be compared: {problem}."""

    hint = "what the store had from another machine was deleted: run the same command again"
    exit_code = 1


class BadKnobRange(BisectError):
    """'{text}' is no knob with two values: {problem}."""

    hint = "write --knob vm.dirty_ratio=20..40, once for each knob; or --from FILE --to FILE"


class BadKnobFile(BisectError):
    """The file {path} cannot be used: {problem}."""

    hint = "write a line NAME = VALUE for each knob, as in sysctl.conf"


class NotOneSource(BisectError):
    """{before} and {after} are not two configurations of one source: {problem}."""

    hint = "ktrial kernel diff shows all that differs; ktrial bisect versions searches releases"


class NoSuchBuild(BisectError):
    """There is no kernel built by ktrial that is called {name}{similar}."""

    hint = "give two build: kernels (ktrial kernel list), or --source S with two configurations"


class BadSeries(BisectError):
    """The series {path} cannot be used: {problem}."""

    hint = "give a directory of *.patch files (applied in the order of their names), or a quilt series file"


class MetricNotMeasured(BisectError):
    """No workload here measures '{metric}'."""

    hint = "there are: {known}"
