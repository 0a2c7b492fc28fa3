"""What differs between two kernels: version, options, patches, compiler, flags, command line, modules."""

from enum import StrEnum

from pydantic import Field

from ktrial.model.base import Model
from ktrial.model.kernel import NewOption, Patch


class Respect(StrEnum):
    """One way in which two kernels can differ. Options that follow from another respect are not counted."""

    VERSION = "version"
    SOURCE = "source"
    PATCHES = "patches"
    OPTIONS = "options"
    COMPILER = "compiler"
    FLAGS = "flags"
    COMMAND_LINE = "command line"


class OptionCause(StrEnum):
    """Why an option is not the same."""

    OWN = "own"
    """Somebody has decided so, as far as can be told."""
    OPTION = "option"
    """It follows from another option that is not the same: it could not have stayed as it was."""
    SOURCE = "source"
    """Only one of the two sources offers it."""
    COMPILER = "compiler"
    """It says which tools built the kernel, or what they can do."""


_COMMAND_LINE = frozenset({"CONFIG_CMDLINE", "CONFIG_CMDLINE_BOOL", "CONFIG_CMDLINE_OVERRIDE"})
"""Options of the command line that is built in."""


class OptionChange(Model):
    """One option that is not the same in two configurations."""

    option: str
    """With its `CONFIG_`."""
    before: str | None
    """`y`, `m`, a number, a text without its quotes; None where it is not set."""
    after: str | None
    cause: OptionCause = OptionCause.OWN
    follows: str = ""
    """With the cause `option`: the option that it follows from in the end, whose own cause is `own`."""
    against_default: bool = False
    """With the cause `option`: what it follows from only makes room for it; its own default is another value,
    so that somebody has set it."""
    menu: tuple[str, ...] = ()
    """The titles of the menus that it stands in, the outermost first; empty where that is not known."""
    renamed_from: str = Field(default="", exclude_if=lambda value: not value)
    """What the kernel called it before, in one of the two; `option` is the newer name."""
    prompt: str = ""
    """What `menuconfig` shows for it; empty where it has none, or it is not known."""
    choice: str = ""
    """The title of the choice that it is an alternative of."""

    @property
    def of_command_line(self) -> bool:
        """Whether it is a part of the command line that is built in."""
        return self.option in _COMMAND_LINE

    @property
    def mirrored(self) -> "OptionChange":
        """The same, from the second kernel to the first."""
        return self.model_copy(update={"before": self.after, "after": self.before})


class RenamedOption(Model):
    """One option that has another name in each of the two kernels."""

    before: str
    """With its `CONFIG_`."""
    after: str
    commit: str = ""
    """Of the kernel's, that renamed it."""

    @property
    def newer(self) -> str:
        """The name that OptionChange has."""
        return self.after if self.forward else self.before

    forward: bool = True
    """Whether the second kernel has the newer name."""


class PatchDifference(Model):
    """One patch that only one of two kernels has."""

    patch: Patch
    in_first: bool
    files: tuple[str, ...] = ()
    """The files of the source that it touches; empty where it cannot be read any more."""


class ModuleChange(Model):
    """A module that only one of the two has, or that is built into one of them."""

    name: str
    before: str
    """`module`, `built in`, or empty: it is not there."""
    after: str


class CodeDifference(Model):
    """What differs in the images and modules of two kernels, apart from where things lie."""

    functions: tuple[str, ...] = ()
    """Functions that only one of the two has, or whose code differs; without the compiler's numbers. Those of
    modules with the module, `read [ext4]`."""
    data: tuple[str, ...] = ()
    """Variables and tables of the same kind; `[ext4]`: something else of a module than its functions."""


class Reach(Model):
    """Whether code that differs between two kernels ran in what was measured, by the profiles of trials."""

    functions: int
    """How many functions differ."""
    data: int
    """How many variables and tables."""
    named: tuple[str, ...] = ()
    """Some of those."""
    ran: tuple[str, ...] = ()
    """Workloads, by their labels, in which a function that differs ran on one of the two kernels."""
    not_run: tuple[str, ...] = ()
    """Workloads in whose profiles none is; without those that have no profile of both kernels."""


class KernelSide(Model):
    """One of the two kernels."""

    name: str
    release: str = ""
    version: str = ""
    """The kernel's own: `6.1.192`."""
    package: str = ""
    """The distribution's version of the package; empty where there is none."""
    source: str = ""
    """The package, the source and commit, or the path, that it came from."""
    digest: str = ""
    compiler: str = ""
    """What the compiler calls itself; empty where it is not known."""
    flags: dict[str, str] = Field(default_factory=dict)
    """Variables that make was given, of a kernel that ktrial built."""
    patches: tuple[Patch, ...] = ()
    command_line: str = ""
    """What is built in (CONFIG_CMDLINE)."""
    built: bool = False
    """Whether ktrial built it, so that patches and flags are known."""


class KernelDifference(Model):
    """All that differs from one kernel to another. What could not be compared is said, with the reason."""

    before: KernelSide
    after: KernelSide
    respects: tuple[Respect, ...] = ()
    """In the order of Respect; empty where the two are the same as far as can be told."""
    options: tuple[OptionChange, ...] = ()
    """Every option that is not the same, by name."""
    renamed: tuple[RenamedOption, ...] = Field(default=(), exclude_if=lambda value: not value)
    """Options that both have, under two names. One whose value differs is in `options` too."""
    patches: tuple[PatchDifference, ...] = ()
    reordered_patches: bool = False
    """The same patches, in another order."""
    modules: tuple[ModuleChange, ...] = ()
    folded: bool = False
    """Whether Kconfig was asked which options follow from others."""
    unknown: tuple[str, ...] = ()
    """What could not be compared, or not be told, and why: one sentence each."""
    same_image: bool = Field(default=False, exclude_if=lambda value: not value)
    """Whether both load the same bytes, apart from marks of the build. Told of a study's."""
    new_options: tuple[NewOption, ...] = Field(default=(), exclude_if=lambda value: not value)
    """What became of the options that only the second one's patches bring."""
    reach: Reach | None = Field(default=None, exclude_if=lambda value: value is None)
    """Of kernels that a study builds from one version, where their images could be compared; else None."""

    @property
    def decided(self) -> tuple[OptionChange, ...]:
        """Options that follow from nothing else, without those of the command line."""
        own = (one for one in self.options if one.cause is OptionCause.OWN)
        return tuple(one for one in own if not one.of_command_line)

    @property
    def set_beside(self) -> tuple[OptionChange, ...]:
        """Options that follow from others, and were set against their own default all the same."""
        return tuple(one for one in self.options if one.against_default)

    def following(self, option: str) -> tuple[OptionChange, ...]:
        """Options that follow from this one."""
        return tuple(one for one in self.options if one.cause is OptionCause.OPTION and one.follows == option)

    @property
    def same_content(self) -> bool:
        """Whether image, modules and configuration are the same to the last bit."""
        return bool(self.before.digest) and self.before.digest == self.after.digest

    @property
    def nothing(self) -> bool:
        """Whether no difference was found."""
        return not (self.respects or self.options or self.modules)
