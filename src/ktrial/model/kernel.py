"""A kernel: how it is built from source, what it consists of, and its place in the order of versions."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from pydantic import Field

from ktrial.model.base import Model, digest

GUEST, DEFCONFIG, DEBIAN = "guest", "defconfig", "debian"
"""Configurations that go by a name; every other is a file."""
REACHED = "reached:"
"""What the name of a file begins with of which only what can be reached is built: `reached:/boot/config`."""


OWN = "own"
"""Whose code a build runs: the user's, and what the user trusts as that."""


_KEY_LENGTH = 12


_OFF = frozenset({"", "n"})


_MOST_OFF = 8
"""Options that are shown of those that are off."""


class Patch(Model):
    """One patch of a series."""

    path: str
    """Absolute; where it was when the study was read."""
    digest: str
    """SHA-256 of its content: this, not where it lies, decides what is built."""


class Build(Model):
    """One kernel to build. Two Builds of one key ask for the same kernel."""

    source: str
    """`debian:linux-source-6.1`, the absolute path of a directory or a tarball, `git:DIRECTORY@REVISION`."""
    config: str = GUEST
    """`guest`, `defconfig`, `debian`, `debian:6.12`, the absolute path of a file, or `reached:` and that."""
    config_digest: str = ""
    """SHA-256 of the file, where the configuration is one."""
    options: dict[str, str] = Field(default_factory=dict)
    """Set over the configuration, and have to take: `CONFIG_SLAB` → `y`, `n`, a number, `"quoted text"`."""
    touched: tuple[str, ...] = Field(default=(), exclude_if=lambda value: not value)
    """Files of the source that are to be compiled, where only what can be reached is; else empty."""
    patches: tuple[Patch, ...] = ()
    """Applied to the source, in this order."""
    # Left out where it is 0: a build's key must stay what it was before there was one.
    fuzz: int = Field(default=0, exclude_if=lambda value: not value)
    """How many lines at the edges of a patch's hunk may differ from the source's."""
    make: dict[str, str] = Field(default_factory=dict)
    """Variables of make: `KCFLAGS` → `-O3`."""
    series: str = Field(default="", exclude_if=lambda value: not value)
    """Digest of the series that the patches are of, or `own`; empty: they are a series of their own."""
    since: str = Field(default="", exclude_if=lambda value: not value)
    """A commit of the source's git tree. An option that the source has and that commit has not is new: like
    one that a patch brings, it has its own default where the configuration says nothing. Empty: only patches
    bring new ones."""

    @property
    def is_reached(self) -> bool:
        """Whether of its configuration only what can be reached is built."""
        return self.config.startswith((f"{DEBIAN}:", REACHED))

    @property
    def config_file(self) -> str:
        """The path of the file that its configuration is; empty where it goes by a name."""
        return self.config.removeprefix(REACHED) if self.config_digest else ""

    @property
    def domain(self) -> str:
        """Whose code it runs: `own` without patches, else that of the series' authors.

        Nothing that a build of one domain has left is used for another's.
        """
        if not self.patches:
            return OWN
        return self.series or digest([patch.digest for patch in self.patches])

    def __hash__(self) -> int:
        """Kernels and what boots them are hashed, and hold it."""
        return hash(self.key)

    @property
    def key(self) -> str:
        """The same for the same request, wherever its files lie. What the source holds is not part of it."""
        request = self.model_dump(mode="json", exclude={"patches", "config", "series"})
        reached = REACHED if self.config.startswith(REACHED) else ""
        config = f"{reached}{self.config_digest}" if self.config_digest else self.config
        return digest(request | {"config": config, "patches": [patch.digest for patch in self.patches]})

    @property
    def name(self) -> str:
        """What the kernel is called: `build:linux-source-6.1+SLAB=y@0123456789ab`."""
        source = self.source.rstrip("/").rpartition("/")[2].removeprefix("debian:").removeprefix("git:")
        options = [f"{name.removeprefix('CONFIG_')}={value}" for name, value in sorted(self.options.items())]
        patches = [patch.path.rpartition("/")[2] for patch in self.patches]
        flags = [f"{name}={value}" for name, value in sorted(self.make.items())]
        parts = options + patches + flags
        shown = "+".join([source, *(parts if len(parts) <= 2 else [*parts[:2], f"{len(parts) - 2} more"])])
        return f"build:{shown.replace(' ', '_')}@{self.key[:_KEY_LENGTH]}"

    def changed(self, change: "BuildChange") -> "Build":
        """The build with what a level of a factor changes; its patches come after those that are there."""
        return self.model_copy(
            update={
                "source": change.source or self.source,
                "options": self.options | change.options,
                "patches": (*self.patches, *change.patches),
                "make": self.make | change.make,
            }
        )


class BuildChange(Model):
    """What a level of a factor changes about the build of a treatment's kernel."""

    source: str = ""
    """In place of the build's own; empty: none."""
    options: dict[str, str] = Field(default_factory=dict)
    patches: tuple[Patch, ...] = ()
    make: dict[str, str] = Field(default_factory=dict)


class NewOption(Model):
    """An option that the source has only with a kernel's patches, or with the commits since its release."""

    option: str
    """With its `CONFIG_`."""
    value: str
    """`y`, `m`, `n`, a number, a text; empty where it is not offered, since what it depends on is off."""

    def __str__(self) -> str:
        """`SCHED_MUQSS=y`."""
        return f"{self.option.removeprefix('CONFIG_')}={self.value or 'n'}"


def options_shown(options: Sequence[NewOption]) -> str:
    """`SCHED_MUQSS=y, SHARERQ=0; off: RQ_MC, RQ_SMT`: all that are on, and some of those that are not."""
    on = [str(option) for option in options if option.value not in _OFF]
    off = [option.option.removeprefix("CONFIG_") for option in options if option.value in _OFF]
    if not on:
        return ", ".join(f"{name}=n" for name in off[:_MOST_OFF]) + _and_more(off)
    left_out = f"off: {', '.join(off[:_MOST_OFF])}{_and_more(off)}" if off else ""
    return "; ".join(filter(None, [", ".join(on), left_out]))


def options_named(options: Sequence[str]) -> str:
    """`CONFIG_SLUB`, `CONFIG_SMP` → `SLUB, SMP`: some of them, and how many more."""
    names = [option.removeprefix("CONFIG_") for option in options]
    return ", ".join(names[:_MOST_OFF]) + _and_more(names)


def _and_more(options: Sequence[NewOption] | Sequence[str]) -> str:
    return f" and {len(options) - _MOST_OFF} more" if len(options) > _MOST_OFF else ""


class Origin(Model):
    """Where a kernel came from."""

    provider: str
    """`debian`, `path`, `host`, `source` or `build`."""
    source: str
    """Package name, or the path that was given."""
    version: str = ""
    """Package version; empty where there is none."""
    suite: str = ""
    """The distribution's suite that held it: `bookworm`, `trixie-backports`."""
    packages: tuple[str, ...] = ()
    """Every package that a part was taken from, as `name=version`."""
    build: Build | None = None
    """What was asked of the build; None where ktrial did not build it."""
    compiler: str = ""
    """What the compiler calls itself, for a kernel that ktrial built."""
    inexact_patches: tuple[str, ...] = ()
    """Hunks of its patches that apply elsewhere than they say, or to other lines around them, in words."""
    new_options: tuple[NewOption, ...] = Field(default=(), exclude_if=lambda value: not value)
    """What became of the options that its patches bring, by name."""
    not_held: tuple[str, ...] = Field(default=(), exclude_if=lambda value: not value)
    """Options, `CONFIG_…`, that are on in the configuration which it follows, and off in it: not for a module
    that nothing reaches."""


class BootImage(Model):
    """What a machine must know of the file that it boots, read when the kernel came into the cache."""

    size: int
    """Bytes of the file: a shorter one is damaged."""
    memory_end: int
    """Up to which address the kernel fills memory while it boots."""
    digest: str = Field(default="", exclude_if=lambda value: not value)
    """SHA-256 of the file; empty where nobody noted it."""


class Kernel(Model):
    """A kernel in the cache. Paths are absolute; a missing part is None."""

    name: str
    """What the user calls it and studies name it by: `debian:6.1`, `debian:6.12:generic`."""
    release: str
    """`uname -r`: `6.1.0-50-cloud-amd64`."""
    flavour: str = ""
    architecture: str = "x86_64"
    origin: Origin
    digest: str
    """SHA-256 over image, modules and configuration: two kernels with one digest are one kernel."""
    config_digest: str = ""
    """SHA-256 of the configuration; empty where it is unknown."""
    size: int = 0
    """Bytes on disk."""
    image: Path
    """The bzImage as it was shipped."""
    vmlinux: Path | None = None
    """The ELF image taken out of `image`, bootable through its PVH note; None where there is none."""
    vmlinux_reason: str = ""
    """Why there is no `vmlinux`, in a few words; empty where there is one."""
    unchecked: str = Field(default="", exclude=True)
    """Why damage to `image` before it came into the cache would not be noticed; empty where it would."""
    boot_image: BootImage | None = Field(default=None, exclude=True)
    """Of `vmlinux`, or of `image` where there is none; None for a kernel that is not in the cache."""
    config: Path | None = None
    modules: Path | None = None
    """The directory that holds `modules.dep` and the modules (`…/lib/modules/<release>`)."""


_RELEASE = re.compile(r"(\d+)\.(\d+)(?:\.(\d+))?(?:[-~]?rc(\d+))?")


_NO_RC = 10**6


Order = tuple[int, int, int, int, str]


def version_order(text: str) -> Order:
    """A key to sort by: 6.1 before 6.12, 6.12-rc3 before 6.12, 6.12 before 6.12.5.

    `text` is what `uname -r` says, or a kernel's name; what holds no version comes last.
    """
    match = _RELEASE.search(text)
    if match is None:
        return (_NO_RC, 0, 0, 0, text)
    major, minor, patch, rc = match.groups()
    return (int(major), int(minor), int(patch or 0), int(rc) if rc else _NO_RC, text)


def measured_order(name: str, release: str) -> Order:
    """A key for kernels that were measured: by version; those of one version that are no packages are alike.

    A package's release counts up. What a build appends to its version is the name of a commit, or of a user:
    there the order in which they were measured has to tell.
    """
    *numbers, text = version_order(release or name)
    major, minor, patch, rc = numbers
    return (major, minor, patch, rc, text if name.startswith("debian:") else "")


def series(text: str) -> tuple[int, int] | None:
    """`6.12` of a release or a name, as numbers; None where it holds none."""
    match = _RELEASE.search(text)
    return (int(match[1]), int(match[2])) if match else None


# What differs between two kernels: version, options, patches, compiler, flags, command line, modules.


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
    copies: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    """Of a name that several functions of one image have: which of them those are (`copy_of` in
    `ktrial.model.profile`)."""
    data: tuple[str, ...] = ()
    """Variables and tables of the same kind; `[ext4]`: something else of a module than its functions."""
    readers: tuple[str, ...] = ()
    """Functions whose code holds the address of one of those variables, in either image."""


class Ways(Model):
    """How a function can be reached."""

    system_calls: tuple[str, ...] = ()
    """From which calls lead to it, the nearest first: `fcntl`."""
    tables: tuple[str, ...] = ()
    """Variables with the address of it, or of one that calls it: `pipefifo_fops`."""
    at_boot: bool = False
    """Whether it is code that the kernel throws away when it has booted (`__init`)."""


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
    locking: dict[str, tuple[str, ...]] = Field(default_factory=dict, exclude_if=lambda value: not value)
    """Workload, by its label → those of the functions that ran there which lock memory or take a lock."""


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
        own_changes = (change for change in self.options if change.cause is OptionCause.OWN)
        return tuple(change for change in own_changes if not change.of_command_line)

    @property
    def set_beside(self) -> tuple[OptionChange, ...]:
        """Options that follow from others, and were set against their own default all the same."""
        return tuple(change for change in self.options if change.against_default)

    def following(self, option: str) -> tuple[OptionChange, ...]:
        """Options that follow from this one."""
        return tuple(
            change
            for change in self.options
            if change.cause is OptionCause.OPTION and change.follows == option
        )

    @property
    def same_content(self) -> bool:
        """Whether image, modules and configuration are the same to the last bit."""
        return bool(self.before.digest) and self.before.digest == self.after.digest

    @property
    def nothing(self) -> bool:
        """Whether no difference was found."""
        return not (self.respects or self.options or self.modules)


# A kernel that another system is asked to build: plain data.


@dataclass(frozen=True)
class BuildOrder:
    """One build, worked out as far as it can be without compiling."""

    build: Build
    content: str
    """Key of what comes out: orders of one content ask for one kernel."""
    request: object
    """What else decides it; only who made the order reads it."""
    files: Mapping[str, Path]
    """SHA-256 of each file that the build reads → where the one who asks has it."""


# What a source's Kconfig says about its options. Plain data.


class MenuOption(Model):
    """One option, as the source defines it."""

    kind: str
    """`bool`, `tristate`, `int`, `hex`, `string`, or `unknown`."""
    prompt: str = ""
    """As menuconfig shows it; empty where nobody is asked: its value follows from others."""
    menu: tuple[str, ...] = ()
    """The menus around it, from the outermost in."""
    depends: str = ""
    """The whole condition, menus included, in Kconfig's own words: `EXPERT && !SLUB_TINY`. Empty: none."""
    selected_by: tuple[str, ...] = ()
    """Options that force it on: `XFS_FS`, or `XFS_FS if BLOCK`."""
    choice: tuple[str, ...] = ()
    """Where it is one of a choice, of which exactly one is on: all of them."""
    place: str = ""
    """Where it is defined first: `mm/Kconfig:231`."""


class Menus(Model):
    """All options of a source, by their full names (`CONFIG_SLAB`)."""

    options: dict[str, MenuOption] = Field(default_factory=dict)
    problem: str = ""
    """Why `options` is empty: what could not be read. Empty where it was."""


# A series of patches over one base: what `ktrial series` measures, wherever it was read from.


class SeriesKind(StrEnum):
    """Where a series was read from."""

    GIT = "git"
    MAILBOX = "mbox"
    QUILT = "quilt"


class SeriesPatch(Model):
    """One patch of a series."""

    number: int
    """Its place, from 1."""
    subject: str
    """As the mail, the commit or the patch's header has it, without `[PATCH 02/12]`; else the file's name."""
    name: str
    """Short: the commit's first 12 digits, or the patch file's name."""
    message_id: str = ""
    """Of the mail, without angle brackets; empty where there is none."""
    author: str = ""
    commit: str = ""
    """Whole; empty where it is no commit."""
    parent: str = ""
    """The commit before it, whole; empty where it is no commit."""
    merge: bool = False
    """Whether the commit is a merge: the step holds all that it brings."""
    patch: Patch | None = None
    """The file that is applied; None for a commit."""
    files: tuple[Patch, ...] = ()
    """The files that are applied one after the other, where several patches are taken as one."""
    undo: Patch | None = None
    """What takes a commit back out of the commits after it; None until it is asked for."""
    paths: tuple[str, ...] = ()
    """The files of the source that it names."""


class PatchSeries(Model):
    """Patches in order, and what they are applied to."""

    kind: SeriesKind
    origin: str
    """What was asked for: the range, or the file's path."""
    base: str
    """The source without them, as a Build names it: `git:DIRECTORY@COMMIT`, `debian:linux-source-6.1`."""
    title: str = ""
    """The cover letter's subject, or that of the only patch; empty where there is none."""
    version: str = ""
    """`v3`; empty for the first one."""
    cover_id: str = ""
    """The cover letter's message id."""
    patches: tuple[SeriesPatch, ...]
    notes: tuple[str, ...] = ()
    """What was left out or is worth knowing, one sentence each."""

    def source(self, plain: Build, upto: int, without: frozenset[int] = frozenset()) -> Build:
        """The build after the first `upto` patches, without some of those; `plain`: of the base."""
        taken = [patch for patch in self.patches[:upto] if patch.number not in without]
        if self.kind is not SeriesKind.GIT:
            patches = (*plain.patches, *_files_of(taken))
            return plain.model_copy(update={"patches": patches, "series": self.domain(plain)})
        # What stands last is taken out first: nothing that came later lies over it then.
        undone = [
            patch.undo for patch in reversed(self.patches[:upto]) if patch.number in without and patch.undo
        ]
        while upto and self.patches[upto - 1].number in without:
            upto -= 1
            undone = undone[1:]
        tree, _, base = plain.source.rpartition("@")
        changes = {"patches": (*plain.patches, *undone), "series": self.domain(plain)}
        if upto:  # as in a mailbox: what the commits bring is new beside the base
            source = f"{tree}@{self.patches[upto - 1].commit}"
            changes |= {"source": source, "since": plain.since or base}
        return plain.model_copy(update=changes)

    def domain(self, plain: Build) -> str:
        """Whose code the builds of its patches run (`Build.domain`); `plain`: of the base."""
        if self.kind is SeriesKind.GIT:
            # The repository is the user's, and so is what takes its commits out again.
            return plain.domain
        return digest([patch.digest for patch in (*plain.patches, *_files_of(self.patches))])


def _files_of(patches: Iterable[SeriesPatch]) -> tuple[Patch, ...]:
    """The files that are applied, in order."""
    return tuple(file for patch in patches for file in patch.files or ((patch.patch,) if patch.patch else ()))
