"""Errors about knobs and about the journal of their changes."""

from ktrial.errors import KtrialError


class KnobError(KtrialError):
    text = "Knob {knob}: {problem}"


class KnobUsageError(KnobError):
    """The command was given something that it cannot take."""

    exit_code = 2


class UnknownKnob(KnobError):
    text = "There is no knob {knob}{similar}."
    hint = "see ktrial knob list; any sysctl name and any path below /proc/sys or /sys can be named too"
    exit_code = 2


class BadKnobName(KnobError):
    text = "{knob} cannot name a knob: {problem}."
    hint = "name one as in ktrial knob list, a sysctl (vm.swappiness), or a path below /proc/sys or /sys"
    exit_code = 2


class KnobNeedsInstance(KnobError):
    text = "There is one {knob} for each {instance}{found}."
    hint = "name one: {knob}@{example}, or all: {knob}@*"
    exit_code = 2


class KnobAbsent(KnobError):
    text = "Knob {knob} is not in this kernel ({release}): {reason}."
    hint = "{next}"


class KnobMoved(KnobAbsent):
    text = "Knob {knob} is not there: kernel {release} keeps it in {place}{change}."
    hint = "name it {name}, and ktrial finds it wherever a kernel keeps it"


class KnobGone(KnobAbsent):
    text = "Knob {knob} is gone: the last kernel with it was {last}, this is {release}."
    hint = "nearest to it is {successor}, which is not the same thing: {difference}"


class KnobNotMounted(KnobError):
    text = "Knob {knob} is in {filesystem}, which is not mounted at {mount_point}."
    hint = "mount it: mount -t {filesystem} none {mount_point}"


class KnobForbidden(KnobError):
    text = "Knob {knob}: {action} is forbidden ({answer})."
    hint = "{next}"


class KnobRefused(KnobError):
    text = "Knob {knob}: the kernel refused {value} ({answer})."
    hint = "{next}"


class JournalError(KnobError):
    text = "The journal in {directory}: {problem}"


class JournalHeld(JournalError):
    text = "Another ktrial is changing knobs on this system ({holder})."
    hint = "wait for it to end; without --no-wait the command waits by itself"


class UnknownSubsystem(KnobError):
    text = "There are no knobs of {subsystem}{similar}; there are those of {known}."
    exit_code = 2
