"""Errors about knobs and about the journal of their changes."""

from ktrial.errors import KtrialError


class KnobError(KtrialError):
    """A knob cannot be read, or cannot be set as it was asked for."""


class BadKnob(KnobError):
    """No knob is called so, or it never takes this value."""

    exit_code = 2


class UnknownKnob(BadKnob):
    """No knob is called so."""

    hint = "see ktrial knob list; any sysctl name and any path below /proc/sys or /sys can be named too"

    def __init__(self, knob: str, similar: str, *, hint: str = "") -> None:
        super().__init__(f"There is no knob {knob}{similar}.", hint=hint)


class BadKnobName(BadKnob):
    """Nothing that a kernel has can be called so."""

    hint = "name one as in ktrial knob list, a sysctl (vm.swappiness), or a path below /proc/sys or /sys"

    def __init__(self, knob: str, problem: str) -> None:
        super().__init__(f"{knob} cannot name a knob: {problem}.")
        self.problem = problem


class KnobNeedsInstance(BadKnob):
    """There are several of it, and none of them was named."""


class KnobAbsent(KnobError):
    """This kernel does not have it."""


class KnobNotMounted(KnobError):
    """It is in a file system that is not mounted."""

    def __init__(self, knob: str, filesystem: str, mount_point: str) -> None:
        super().__init__(
            f"Knob {knob} is in {filesystem}, which is not mounted at {mount_point}.",
            hint=f"mount it: mount -t {filesystem} none {mount_point}",
        )
        self.filesystem = filesystem


class KnobForbidden(KnobError):
    """It may not be read, written, or changed without a way back."""

    def __init__(self, knob: str, action: str, answer: str, *, hint: str) -> None:
        super().__init__(f"Knob {knob}: {action} is forbidden ({answer}).", hint=hint)


class KnobRefused(KnobError):
    """The kernel answered with an error when it was written."""

    def __init__(self, knob: str, value: str, answer: str, *, hint: str) -> None:
        super().__init__(f"Knob {knob}: the kernel refused {value} ({answer}).", hint=hint)
        self.answer = answer


class JournalError(KnobError):
    """The journal cannot be used."""


class JournalHeld(JournalError):
    """Another ktrial is changing knobs on this system."""
