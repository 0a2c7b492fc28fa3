"""Errors about baselines, and about checks against them."""

from ktrial.errors import KtrialError


class CheckError(KtrialError):
    """{problem}"""


class BaselineNotThere(CheckError):
    """There is no baseline {name} in store {store}{similar}, and no kernel is called so."""

    hint = (
        "save one: ktrial baseline save {name} --kernel K --workload W; or name a kernel, such as debian:6.1"
    )
    exit_code = 2


class BadBaselineName(CheckError):
    """'{name}' cannot name a baseline: {problem}."""

    hint = "use letters, digits, '.', '_' and '-': last-release, v6.12"
    exit_code = 2


class BaselineFailed(CheckError):
    """The baseline {name} could not be measured: {problem}."""

    hint = "nothing is decided; take a baseline that boots and runs the workloads"


class BaselineIncomparable(CheckError):
    """Baseline {name} and {kernel} must not be compared: {problem}."""

    hint = "save it anew: ktrial baseline save {name} --kernel {saved} {workloads}"


class BaselineLacks(CheckError):
    """Baseline {name} was not measured with {what}; it has {there}."""

    hint = "leave the option out, or save it anew: ktrial baseline save {name} …"
    exit_code = 2


class BadLimit(CheckError):
    """--max {text}: {problem}."""

    hint = "write --max +1%, or for one workload --max fork=+2%"
    exit_code = 2


class MachineFailedCheck(CheckError):
    """The machine failed while it ran {kernel}: {problem}."""

    hint = "this says nothing about the kernel; ktrial doctor looks at the machine"
