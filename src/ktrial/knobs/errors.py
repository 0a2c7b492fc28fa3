"""Errors about knobs and about the journal of their changes."""

from ktrial.errors import KtrialError


class KnobError(KtrialError):
    """Knob {knob}: {problem}"""


class UnknownKnob(KnobError):
    """There is no knob {knob}{similar}."""

    hint = "see ktrial knob list; any sysctl name and any path below /proc/sys or /sys can be named too"
    exit_code = 2


class BadKnobName(KnobError):
    """{knob} cannot name a knob: {problem}."""

    hint = "name one as in ktrial knob list, a sysctl (vm.swappiness), or a path below /proc/sys or /sys"
    exit_code = 2


class BadKnobValue(KnobError):
    """Knob {knob} cannot be {value}: {problem}."""

    hint = "allowed: {allowed}"
    exit_code = 2


class KnobNeedsInstance(KnobError):
    """There is one {knob} for each {instance}{found}."""

    hint = "name one: {knob}@{example}, or all: {knob}@*"
    exit_code = 2


class KnobAbsent(KnobError):
    """Knob {knob} is not in this kernel ({release}): {reason}."""

    hint = "{next}"


class KnobMoved(KnobAbsent):
    """Knob {knob} is not there: kernel {release} keeps it in {place}{change}."""

    hint = "name it {name}, and ktrial finds it wherever a kernel keeps it"


class KnobGone(KnobAbsent):
    """Knob {knob} is gone: the last kernel with it was {last}, this is {release}."""

    hint = "nearest to it is {successor}, which is not the same thing: {difference}"


class KnobNotMounted(KnobError):
    """Knob {knob} is in {filesystem}, which is not mounted at {mount_point}."""

    hint = "mount it: mount -t {filesystem} none {mount_point}"


class KnobForbidden(KnobError):
    """Knob {knob}: {action} is forbidden ({answer})."""

    hint = "{next}"


class KnobRefused(KnobError):
    """Knob {knob}: the kernel refused {value} ({answer})."""

    hint = "{next}"


class KnobNotTaken(KnobError):
    """Knob {knob}: the kernel took {value} without an error, and left the knob at {now}."""

    hint = "{next}"


class KnobRounded(KnobError):
    """Knob {knob}: {value} was asked for, the kernel made it {now}."""

    hint = "ask for {now}, so that what is measured is what was asked for"


class KnobNeedsReboot(KnobError):
    """Knob {knob} is a boot parameter: it cannot be changed while the kernel runs."""

    hint = 'compare it in a study (machine exact boots each level): target = "{parameter}", kind = "boot"'


class JournalError(KnobError):
    """The journal in {directory}: {problem}"""


class JournalHeld(JournalError):
    """Another ktrial is changing knobs on this system ({holder})."""

    hint = "wait for it to end; without --no-wait the command waits by itself"


class JournalUnsafe(JournalError):
    """The journal in {directory} is not safe: {problem}."""

    hint = "nobody else may write there, since it says what is written to the kernel: {fix}"


class JournalForbidden(JournalError):
    """The journal in {directory} cannot be written: {problem}."""

    hint = "check the rights and the space there, or name another directory: KTRIAL_JOURNAL"


class UnknownSubsystem(KnobError):
    """There are no knobs of {subsystem}{similar}; there are those of {known}."""

    exit_code = 2
