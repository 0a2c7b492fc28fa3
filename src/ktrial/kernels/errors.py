"""Errors about kernels: finding, fetching, reading."""

from pathlib import Path

from ktrial.errors import KtrialError
from ktrial.package_names import INSTALL
from ktrial.system_tools import Tool


class KernelError(KtrialError):
    text = "Kernel {name}: {problem}"
    problem: str = ""
    """What is wrong, without what it is wrong with; empty where the message is given whole."""

    def __init__(self, message: str = "", /, *, hint: object = "", **facts: object) -> None:
        super().__init__(message, hint=hint, **facts)
        self.problem = str(facts.get("problem", ""))


class KernelUsageError(KernelError):
    """The command was given something that it cannot take."""

    exit_code = 2


class KernelNotFound(KernelError):
    text = "There is no kernel {name} in the cache{similar}."
    hint = "add it: ktrial kernel add {name}"


class BadKernelName(KernelError):
    text = "'{name}' does not name a kernel: {problem}."
    hint = "{allowed}"
    exit_code = 2


class KernelNameAmbiguous(BadKernelName):
    text = "Several built kernels are called {name}."
    hint = "say which: {allowed}"


class NoSuchRelease(KernelError):
    text = "{distribution} has no kernel {name}: {problem}."
    hint = "{available}"


class NoDebugInfo(KernelError):
    text = "Of {name} no source lines are known: {problem}."
    hint = "Debian's -dbg packages have them, and builds with DEBUG_INFO_NONE=n and DEBUG_INFO_DWARF5=y"


class NoSuchFunction(KernelUsageError):
    text = "The kernel's image has no function {name}{similar}."
    hint = "those that ran: ktrial profile --top 100; of modules, lines are not told"


class ImageError(KernelError):
    text = "{path} {problem}."
    hint = "{expected}"


class NotAKernel(ImageError):
    text = "{path} is not a kernel image: it is {found}."
    hint = "expected: an x86-64 kernel image (bzImage, often called vmlinuz) or an uncompressed ELF vmlinux"


class ImageTruncated(ImageError):
    text = (
        "{path} is a kernel image that was cut short: it has {present} bytes, its header promises {promised}."
    )
    hint = "copy or build it again"


class ModulesUnusable(KernelError):
    text = "{directory} cannot serve as modules of kernel {name}: {problem}."
    hint = "expected: a directory like /lib/modules/{release}, or one that holds lib/modules/{release}"


class UnknownModule(KernelError):
    text = "Kernel {name} has no module {module}{similar}."
    hint = "its modules are below {directory}"


class SymbolsUnknown(KernelError):
    text = "The symbols of kernel {name} are not known yet: its System.map is absent or a stub."
    hint = "they are read from the kernel itself (/proc/kallsyms) when a trial boots it"


class ToolMissing(KernelError):
    text = "{tool} is not installed; it {purpose}."
    hint = f"{INSTALL} {{package}}"


class NoDebianSource(KernelError):
    text = "There is no apt here that knows a Debian archive, so kernel {name} cannot be fetched."
    hint = (
        "add a Debian source to apt (in /etc/apt/sources.list.d, with Signed-By: debian-archive-keyring.gpg; "
        f"on Ubuntu: {INSTALL} debian-archive-keyring), or use path:FILE, rpm:DIRECTORY or host:"
    )


class FetchFailed(KernelError):
    text = "Kernel {name} could not be fetched from {distribution}: {problem}"
    hint = "check the network and the system's apt configuration: sudo apt-get update"


class CacheFull(KernelError):
    text = "The disk that holds the cache directory {directory} is full: {needed} needed, {free} free."
    hint = "free some space (ktrial kernel list, ktrial kernel remove NAME), or set KTRIAL_CACHE elsewhere"


class CacheUnusable(KernelError):
    text = "The cache directory {directory} cannot be used: {problem}."
    hint = "set KTRIAL_CACHE to a directory that you can write to"


class CacheDamaged(KernelError):
    text = "The cache's record of kernel {name} is damaged ({path}): {problem}."
    hint = "fetch it again: ktrial kernel remove {name}; ktrial kernel add {name}"


class KernelDamaged(KernelError):
    text = "Kernel {name} is damaged in the cache ({files}), and cannot be repaired: {problem}."
    hint = "nothing was booted from it; add it again: ktrial kernel add {name}"


# Errors about kernels that are built from source.

BUBBLEWRAP = Tool("bwrap", "bubblewrap", "keeps what a source runs away from the rest of this system")
"""Not called a build's tool: without it sources of one's own are built all the same."""


class BuildError(KernelError):
    text = "{directory}: {problem}"


class NotASource(BuildError):
    text = "{directory} is not a kernel's source tree: {problem}."
    hint = "expected: the top directory of Linux's source, with Makefile, Kconfig and arch/x86"
    exit_code = 2


class BuildToolsMissing(BuildError):
    text = "Building {directory} needs {tools}, not installed here."
    hint = f"{INSTALL} {{packages}}"

    @property
    def tools(self) -> str:
        """Programs and headers, with commas between them."""
        return str(self.facts["tools"])


class BadBuildOption(BuildError):
    text = "'{text}' sets no configuration option: {problem}."
    hint = "write NAME=y, NAME=n, NAME=m, or NAME=VALUE: --option SLUB_DEBUG_ON=y --option HZ_1000=y"
    exit_code = 2


class BadConfigFile(BuildError):
    text = "The configuration {path} cannot be used: {problem}."
    hint = "give guest, defconfig, debian, or a file with lines like CONFIG_SMP=y"
    exit_code = 2


class OptionNotTaken(BuildError):
    text = "The option {option}={wanted} could not be set in {directory}: {problem}."
    hint = "{advice}"

    @property
    def setting(self) -> str:
        """`CONFIG_HZ_1000=y`."""
        return f"{self.facts['option']}={self.facts['wanted']}"


class BuildFailed(BuildError):
    text = "{directory} does not build: {problem}"
    hint = "the whole log: {log}"

    @property
    def log(self) -> Path:
        """What make printed."""
        return Path(str(self.facts["log"]))


class BuildCutShort(BuildFailed):
    """It may succeed another time, and its build tree waits for that."""

    text = "The build of {directory} was ended from outside, which says nothing about the source: {problem}"


class SourceUnusable(BuildError):
    text = "{source} cannot be used as a kernel's source: {problem}."
    hint = "{advice}"
    exit_code = 2


class BadPatch(BuildError):
    text = "The patch {path} cannot be used: {problem}."
    hint = "{advice}"
    exit_code = 2


class PatchNotApplied(BuildError):
    text = "The patch {path} does not apply to {directory}: {problem}."
    hint = "{advice}"


class CompilerUnsuitable(BuildError):
    text = "{directory} needs {wanted}; this system has {found}."
    hint = "{advice}"


class SandboxFailed(BuildError):
    text = "bubblewrap cannot confine a build of {directory} here: {problem}."
    hint = "bwrap --version; ktrial doctor"


class ProcessesSpent(KernelError):
    text = "No build can be started: user {user}, who runs the builds, has as many processes as allowed."
    hint = "wait for the build that has started them, or end it: pkill -KILL -u {user}"


class BuildDiffers(BuildError):
    text = "Another system was to build {directory}, and built something else: {problem}."
    hint = "the same command asks another one; --fleet none builds here"
