"""Errors about kernels that are built from source."""

from ktrial.kernels.errors import KernelError
from ktrial.package_names import INSTALL
from ktrial.system_tools import Tool

BUBBLEWRAP = Tool("bwrap", "bubblewrap", "keeps what a source runs away from the rest of this system")
"""Not called a build's tool: without it sources of one's own are built all the same."""


class BuildError(KernelError):
    """{directory}: {problem}"""


class NotASource(BuildError):
    """{directory} is not a kernel's source tree: {problem}."""

    hint = "expected: the top directory of Linux's source, with Makefile, Kconfig and arch/x86"
    exit_code = 2


class SourceNotClean(BuildError):
    """{directory} holds what a build in place has made ({found}), so nothing can be built beside it."""

    hint = "keep its .config if you need it, then: make -C {directory} mrproper"


class BuildToolsMissing(BuildError):
    """Building {directory} needs {tools}, not installed here."""

    hint = f"{INSTALL} {{packages}}"


class BadBuildOption(BuildError):
    """'{text}' sets no configuration option: {problem}."""

    hint = "write NAME=y, NAME=n, NAME=m, or NAME=VALUE: --option SLUB_DEBUG_ON=y --option HZ_1000=y"
    exit_code = 2


class BadConfigFile(BuildError):
    """The configuration {path} cannot be used: {problem}."""

    hint = "give guest, defconfig, debian, or a file with lines like CONFIG_SMP=y"
    exit_code = 2


class OptionNotTaken(BuildError):
    """The option {option}={wanted} did not take in {directory}: {problem}."""

    hint = "{advice}"


class BuildFailed(BuildError):
    """{directory} does not build: {problem}"""

    hint = "the whole log: {log}"


class BuildCutShort(BuildFailed):
    """The build of {directory} was ended from outside, which says nothing about the source: {problem}"""


class NoSuchSource(BuildError):
    """{distribution} has no source package {name}: {problem}."""

    hint = "{available}"


class SourceUnusable(BuildError):
    """{source} cannot be used as a kernel's source: {problem}."""

    hint = "{advice}"
    exit_code = 2


class SourceChanged(BuildError):
    """{directory} was changed while it was read: {path}."""

    hint = "start again when nobody writes to it"


class BadPatch(BuildError):
    """The patch {path} cannot be used: {problem}."""

    hint = "{advice}"
    exit_code = 2


class PatchNotApplied(BuildError):
    """The patch {path} does not apply to {directory}: {problem}."""

    hint = "{advice}"


class BadMakeVariable(BuildError):
    """The make variable {text} cannot be set: {problem}."""

    hint = "allowed: {allowed}"
    exit_code = 2


class CompilerUnsuitable(BuildError):
    """{directory} wants {wanted}; here is {found}."""

    hint = "{advice}"


class NoRecipe(BuildError):
    """Nothing is known of {name}: it was never built here."""

    hint = "build it: ktrial kernel build SOURCE; ktrial kernel list shows what is there"


class SandboxMissing(BuildError):
    """A series from a mailbox is built in a sandbox only, and there is none: {problem}."""

    hint = f"{INSTALL} {BUBBLEWRAP.package}; or --trust, if you would run its makefiles as yourself"
    exit_code = 2


class SandboxFailed(BuildError):
    """bubblewrap confines no build of {directory} here: {problem}."""

    hint = "bwrap --version; ktrial doctor"


class BuildDiffers(BuildError):
    """Another system was to build {directory}, and built something else: {problem}."""

    hint = "the same command asks another one; --fleet none builds here"
