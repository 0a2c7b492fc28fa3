"""Errors about kernels: finding, fetching, reading."""

from ktrial.errors import KtrialError
from ktrial.package_names import INSTALL
from ktrial.system_tools import Tool


class KernelError(KtrialError):
    """Kernel {name}: {problem}"""


class KernelNotFound(KernelError):
    """There is no kernel {name} in the cache{similar}."""

    hint = "add it: ktrial kernel add {name}"


class BadKernelName(KernelError):
    """'{name}' does not name a kernel: {problem}."""

    hint = "{allowed}"
    exit_code = 2


class KernelNameAmbiguous(BadKernelName):
    """Several built kernels are called {name}."""

    hint = "say which: {allowed}"


class NoSuchRelease(KernelError):
    """{distribution} has no kernel {name}: {problem}."""

    hint = "{available}"


class NoHostKernel(KernelError):
    """The running kernel {release} has no image on this machine: looked for {places}."""

    hint = "give its image: ktrial kernel add path:/where/vmlinuz --modules DIR --config FILE"


class ImageError(KernelError):
    """{path} {problem}."""

    hint = "{expected}"


class ImageUnreadable(ImageError):
    """{path} cannot be read: {problem}."""

    hint = "expected: an x86-64 kernel image (bzImage, often called vmlinuz) or an uncompressed ELF vmlinux"


class NotAKernel(ImageError):
    """{path} is not a kernel image: it is {found}."""

    hint = "expected: an x86-64 kernel image (bzImage, often called vmlinuz) or an uncompressed ELF vmlinux"


class ImageTruncated(ImageError):
    """{path} is a kernel image that was cut short: it has {present} bytes, its header promises {promised}."""

    hint = "copy or build it again"


class ImageDamaged(ImageError):
    """{path} is a kernel image that is damaged: {problem}."""

    hint = "copy or build it again"


class WrongArchitecture(ImageError):
    """{path} is a kernel image for {architecture}; ktrial boots x86-64 kernels only."""

    hint = "build or fetch the kernel for x86-64 (Debian calls it amd64)"


class ModulesUnusable(KernelError):
    """{directory} cannot serve as modules of kernel {name}: {problem}."""

    hint = "expected: a directory like /lib/modules/{release}, or one that holds lib/modules/{release}"


class ConfigUnusable(KernelError):
    """{path} cannot serve as configuration of kernel {name}: {problem}."""

    hint = "expected: the .config that the kernel was built with (lines like CONFIG_SMP=y)"


class UnknownModule(KernelError):
    """Kernel {name} has no module {module}{similar}."""

    hint = "its modules are below {directory}"


class UnknownOption(KernelError):
    """'{option}' is not the name of a configuration option of kernel {name}: {problem}."""

    hint = "names look like CONFIG_SMP; ktrial kernel show {name} tells whether the configuration is known"


class SymbolsUnknown(KernelError):
    """The symbols of kernel {name} are not known yet: its System.map is absent or a stub."""

    hint = "they are read from the kernel itself (/proc/kallsyms) when a trial boots it"


class ToolMissing(KernelError):
    """{tool} is not installed; it {purpose}."""

    hint = f"{INSTALL} {{package}}"


class ToolFailed(KernelError):
    """{tool} failed (exit {status}): {output}"""

    hint = "{advice}"


class UnknownPackageFormat(KernelError):
    """{file} is a package in a format that ktrial cannot unpack; it knows {known}."""


class PackageTooLarge(KernelError):
    """{file} would unpack to {size} bytes, and a kernel's package to {most} at most: it is not unpacked."""


class NoDebianSource(KernelError):
    """There is no apt here that knows a Debian archive, so kernel {name} cannot be fetched."""

    hint = (
        "add a Debian source to apt (in /etc/apt/sources.list.d, with Signed-By: debian-archive-keyring.gpg; "
        f"on Ubuntu: {INSTALL} debian-archive-keyring), or use path:FILE, rpm:DIRECTORY or host:"
    )


class FetchFailed(KernelError):
    """Kernel {name} could not be fetched from {distribution}: {problem}"""

    hint = "check the network and the system's apt configuration: sudo apt-get update"


class ListsOutOfDate(FetchFailed):
    """Kernel {name} could not be fetched from {distribution}: {problem}"""

    hint = (
        "this machine's clock says {now}: if that is wrong, set it (sudo timedatectl set-ntp true); if it is "
        "right, the mirror is out of date: use another"
    )


class CacheFull(KernelError):
    """The disk that holds the cache directory {directory} is full: {needed} needed, {free} free."""

    hint = "free some space (ktrial kernel list, ktrial kernel remove NAME), or set KTRIAL_CACHE elsewhere"


class CacheUnusable(KernelError):
    """The cache directory {directory} cannot be used: {problem}."""

    hint = "set KTRIAL_CACHE to a directory that you can write to"


class CacheDamaged(KernelError):
    """The cache's record of kernel {name} is damaged ({path}): {problem}."""

    hint = "fetch it again: ktrial kernel remove {name}; ktrial kernel add {name}"


class KernelDamaged(KernelError):
    """Kernel {name} is damaged in the cache ({files}), and cannot be made whole: {problem}."""

    hint = "nothing was booted from it; have it anew: ktrial kernel add {name}"


class BadRange(KernelError):
    """'{text}' is no range of releases: {problem}."""

    hint = "{advice}"
    exit_code = 2


# Errors about kernels that are built from source.

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
