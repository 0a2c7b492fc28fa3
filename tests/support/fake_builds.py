"""Kernels from source without a compiler: what is asked for is written down, and has a name."""

import os
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import pytest
from tests.support.kernel_images import elf
from tests.support.scripted import a_kernel

from ktrial.experiment.resources import Builder
from ktrial.kernels import Progress
from ktrial.kernels.errors import BadBuildOption, BuildFailed, KernelError, NotASource, OptionNotTaken
from ktrial.model.base import digest
from ktrial.model.kernel import Build, Kernel, Origin, Patch

NO_OPTION = "CONFIG_NO_SUCH"
"""No source has it."""


def requested(
    source: str,
    *,
    config: str = "guest",
    options: Mapping[str, str] | Sequence[str] = (),
    patches: Sequence[str] = (),
    make: Mapping[str, str] | None = None,
    fuzz: int = 0,
    directory: Path,
) -> Build:
    """Every source is one, unless it is called `nowhere`; a patch is a file that is there."""
    if source == "nowhere":
        raise NotASource(directory=source, problem="there is no such directory")
    named = dict(options if isinstance(options, Mapping) else (text.split("=", 1) for text in options))
    for name, value in named.items():
        if not value or " " in name:
            text = f"{name}={value}"
            raise BadBuildOption(text=text, problem="there is no value")
    return Build(
        source=source if ":" in source else str(directory / source),
        config=config,
        options={f"CONFIG_{name.removeprefix('CONFIG_')}": value for name, value in named.items()},
        patches=tuple(_patch(directory / patch) for patch in patches),
        make=dict(make or {}),
        fuzz=fuzz,
    )


def _patch(path: Path) -> Patch:
    if not path.is_file():
        raise NotASource(directory=path, problem="there is no such patch")
    return Patch(path=str(path), digest=digest(path.read_text()))


class FakeBuilder:
    """Writes down what it is asked for; builds whose option or flag says so fail."""

    def __init__(self, cached: Sequence[str] = ()) -> None:
        self.configured: list[Build] = []
        self.built: list[Build] = []
        self._cached = set(cached)
        self._lock = threading.Lock()

    @property
    def builder(self) -> Builder:
        return Builder(build=self._build, configured=self._configured, cached=self._kept)

    def _kept(self, wanted: Build) -> Kernel | None:
        return self.kernel(wanted) if wanted.name in self._cached else None

    def _configured(self, wanted: Build, progress: Progress) -> dict[str, str]:
        self.configured.append(wanted)
        progress("configuring")
        if NO_OPTION in wanted.options:
            raise self.not_taken()
        return dict(wanted.options)

    def _build(self, wanted: Build, progress: Progress) -> Kernel:
        with self._lock:
            self.built.append(wanted)
        progress("building", 1, 2)
        if wanted.make.get("KCFLAGS") == "-broken":
            raise self.failed()
        self._cached.add(wanted.name)
        return self.kernel(wanted)

    @staticmethod
    def not_taken() -> KernelError:
        facts = {"option": NO_OPTION, "wanted": "y", "problem": "there is no such option", "advice": ""}
        return OptionNotTaken(directory="linux", **facts)

    @staticmethod
    def failed() -> KernelError:
        return BuildFailed(directory="linux", problem="gcc: error: -broken", log="build.log")

    @staticmethod
    def kernel(wanted: Build) -> Kernel:
        origin = Origin(
            provider="build", source=wanted.source, version="6.1.1", build=wanted, compiler="gcc 12.2"
        )
        return a_kernel(wanted.name, release="6.1.1", origin=origin, digest=digest(wanted.key))


# A host that has every program and header that builds and guests ask for, whatever is installed here.

PROGRAMS = (
    *("make", "flex", "bison", "bc", "perl", "gcc", "ld", "objcopy", "patch", "git", "depmod"),
    *("apt-get", "dpkg-deb", "tar", "xz", "qemu-system-x86_64", "cpio", "setpriv", "strace"),
)


HEADERS = ("libelf.h",)


class DiskUsage(NamedTuple):
    """As shutil tells it, in bytes."""

    total: int
    used: int
    free: int


def has_what_builds_need(patch: pytest.MonkeyPatch, directory: Path) -> None:
    """Programs that do nothing come after those of this host; the headers are empty; disks have room."""
    has_room(patch, 1 << 40)
    programs, headers = directory / "programs", directory / "headers"
    for each in (programs, headers):
        each.mkdir(parents=True)
    for name in PROGRAMS:
        (programs / name).symlink_to("/bin/true")
    for name in HEADERS:
        (headers / name).touch()
    patch.setenv("PATH", os.pathsep.join((os.environ.get("PATH", os.defpath), str(programs))))
    patch.setenv("C_INCLUDE_PATH", str(headers))


def has_room(patch: pytest.MonkeyPatch, free: int) -> None:
    """So many bytes are free on every disk: a /tmp of 1.5 GB has not what a build needs."""
    patch.setattr("shutil.disk_usage", lambda _place: DiskUsage(1 << 40, (1 << 40) - free, free))


# A source tree as small as ktrial lets pass for Linux, whose make 'builds' in no time.

_MAKEFILE = """\
VERSION = 6
PATCHLEVEL = 1
SUBLEVEL = 7
EXTRAVERSION =

.PHONY: allnoconfig olddefconfig x86_64_defconfig vmlinux
# What kconfig does, as far as it matters here: an option that Kconfig does not have is dropped, and so is one
# that depends on BROKEN.
resolve = grep -v -e UNKNOWN -e NEEDS_BROKEN

allnoconfig:
\t@mkdir -p $(O)
\t@$(resolve) $(KCONFIG_ALLCONFIG) > $(O)/.config
x86_64_defconfig:
\t@mkdir -p $(O)
\t@printf 'CONFIG_SMP=y\\nCONFIG_HZ=250\\n' > $(O)/.config
olddefconfig:
\t@$(resolve) $(O)/.config > $(O)/.config.new; mv $(O)/.config.new $(O)/.config
vmlinux:
\t@echo "  CC      kernel/fork.o"
\t@if [ -e broken ]; then \\
\t  echo "make[2]: Entering directory" ; \\
\t  echo "kernel/fork.c:12:3: error: 'naem' undeclared" ; \\
\t  echo "kernel/fork.c:13:3: error: and another" ; exit 1 ; fi
\t@if [ -e full ]; then echo "ld: final link failed: No space left on device"; exit 1; fi
\t@cp image $(O)/vmlinux
\t@env | sort > $(O)/environment
\t@echo "$(MAKEFLAGS) CC=$(CC)" > $(O)/flags
\t@echo "ffffffff81000000 T _text" > $(O)/System.map
"""


_MERGE = """\
#!/bin/sh
# merge_config.sh -m FRAGMENT...: the last word on an option is kept
shift
awk '/^CONFIG_/ { split($0, a, "="); if (!(a[1] in line)) order[++n] = a[1]; line[a[1]] = $0 }
     END { for (i = 1; i <= n; i++) print line[order[i]] }' "$@" > "$KCONFIG_CONFIG"
"""


_KCONFIG = """\
config SMP
\tbool "Several CPUs"

config NEEDS_BROKEN
\tbool "Never on"
\tdepends on BROKEN
\tdepends on SMP
"""


def a_source_tree(directory: Path, release: str = "6.1.7", extra: bytes = b"") -> Path:
    """Write it to a new directory; `extra` makes its kernel another one."""
    for name, text in {
        "Makefile": _MAKEFILE,
        "Kconfig": 'source "init/Kconfig"\n',
        "init/Kconfig": _KCONFIG,
        "arch/Kconfig": "",
        "arch/x86/Kconfig": "config 64BIT\n\tbool\n",
        "scripts/kconfig/merge_config.sh": _MERGE,
    }.items():
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (directory / "scripts/kconfig/merge_config.sh").chmod(0o755)
    (directory / "image").write_bytes(elf(release=release, extra=extra))
    return directory


# A source tree whose make compiles an object for each kernel/*.c by its own rules, and notes which.

_RULES = """\
OBJECTS = $(patsubst kernel/%.c,$(O)/kernel/%.o,$(wildcard kernel/*.c))
$(O)/kernel/%.o: kernel/%.c
\t@mkdir -p $(O)/kernel
\t@if grep -q STOP $< || [ "$$LC_MESSAGES" = $* ]; then exec sleep 60; fi
\t@if grep -q ERROR $<; then cat $< >&2; exit 1; fi
\t@cp $< $@
\t@echo "  CC      $<"
\t@echo $* $$(date +%s.%N) >> $(O)/compiled
vmlinux: $(OBJECTS)
"""


# `STOP` in a file, or its name in the environment's LC_MESSAGES: its compilation takes a minute.
# `ERROR` in it: that is what the compiler says.
FILES = {"fork": "int fork;\n", "sched": "int sched;\nint slice = 3;\nint end;\n"}


def a_buildable_source(directory: Path, files: dict[str, str] | None = None) -> Path:
    """Write it to a new directory."""
    a_source_tree(directory)
    makefile = directory / "Makefile"
    text = makefile.read_text().replace("vmlinux:\n", _RULES, 1)
    text = text.replace("cp image $(O)/vmlinux", "cat image $(OBJECTS) > $(O)/vmlinux")
    makefile.write_text(text)
    (directory / "kernel").mkdir()
    for name, content in (files or FILES).items():
        (directory / f"kernel/{name}.c").write_text(content)
    return directory


def a_resolving_source(directory: Path, kconfig: str) -> Path:
    """One whose make resolves configurations as the kernel's does, in this Python; outside of a sandbox."""
    a_buildable_source(directory)
    makefile = directory / "Makefile"
    text = makefile.read_text()
    for target in ("allnoconfig", "olddefconfig"):
        begin = text.index(f"\n{target}:")
        old = text[begin : text.index("\n", text.index("\t@$(resolve)", begin))]
        resolve = (
            f"KCONFIG_CONFIG=$(O)/.config srctree=. {sys.executable} -m {target} Kconfig >/dev/null 2>&1"
        )
        export = "KCONFIG_ALLCONFIG=$(KCONFIG_ALLCONFIG) " if target == "allnoconfig" else ""
        text = text.replace(old, f"\n{target}:\n\t@mkdir -p $(O)\n\t@{export}{resolve}")
    makefile.write_text(text)
    (directory / "Kconfig").write_text(kconfig)
    return directory


def compiled(cache: Path) -> list[str]:
    """Every object that was compiled in any tree, each as often as it was; a copied tree has its log, too."""
    logs = (cache / "trees").glob("*/source/build/compiled")
    return sorted(line.split()[0] for line in {line for log in logs for line in log.read_text().splitlines()})


def git(directory: Path, *arguments: str) -> str:
    """Run git in a directory, as somebody."""
    who = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false"]
    done = subprocess.run(
        ["git", *who, "-C", directory, *arguments], check=True, capture_output=True, text=True
    )
    return done.stdout.strip()


def a_patch(source: Path, name: str, old: str, new: str) -> str:
    """A patch that changes one file of kernel/, as diff -u writes it."""
    path = source / f"kernel/{name}.c"
    changed = path.with_suffix(".new")
    changed.write_text(path.read_text().replace(old, new))
    done = subprocess.run(
        ["diff", "-u", "--label", f"a/kernel/{name}.c", "--label", f"b/kernel/{name}.c", path, changed],
        capture_output=True,
        text=True,
        check=False,
    )
    changed.unlink()
    assert done.stdout
    return done.stdout
