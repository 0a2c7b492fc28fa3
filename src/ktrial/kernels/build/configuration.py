"""Make a build's .config: fragments, merged by the kernel's own merge_config.sh, resolved by its own kconfig.

`guest` is the smallest useful configuration: guest.config (all of it has to take) over typical.config (what
the source has of it), all else off. Others start from defconfig or from a file, and what they do not name
has its default. Options that patches bring have their own defaults in all of them: a patch whose author
switches it on would not be in the kernel at all in a configuration that has all else off. The user's options
come last, and have to take.
"""

import re
import shutil
import subprocess
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path

from ktrial.kernels.build.compiler import Compiler, check_compiler
from ktrial.kernels.build.errors import BadConfigFile, SandboxFailed
from ktrial.kernels.build.make import Make
from ktrial.kernels.build.new_options import brought_by_patches, settle
from ktrial.kernels.build.patched_source import BuildSource
from ktrial.kernels.build.recipes import Manifest, content_kept
from ktrial.kernels.build.sandbox import is_plain, refusal_in
from ktrial.kernels.build.source_debian import debian_config, series_of
from ktrial.kernels.build.source_tree import tree_in
from ktrial.kernels.cache.atomic_write import write_atomically
from ktrial.kernels.cache.location import cache_directory
from ktrial.kernels.cache.locks import held, held_if_free
from ktrial.kernels.kconfig.config import parse_config
from ktrial.kernels.kconfig.menus import definitions, menus_in, unmet_dependencies
from ktrial.kernels.progress import Progress, silent
from ktrial.model.base import digest
from ktrial.model.kernel import DEBIAN, DEFCONFIG, GUEST, Build, Menus

_REQUESTED = "requested.config"
_SHIPPED = ("typical.config", "guest.config")
_UNSET = re.compile(r"^# (CONFIG_\w+) is not set$", re.MULTILINE)


def configure(
    make: Make, config: str, options: Mapping[str, str], given: str = "", brought: Collection[str] = ()
) -> None:
    """Write the build directory's .config. Raises BadConfigFile, OptionNotTaken, BuildFailed.

    `given`: the text of the configuration, where it is neither ktrial's own nor the source's. `brought`:
    options that only the patched source has.
    """
    fragments = [make.write_file("given.config", given)] if given else _fragments(make, config)
    own = make.write_file("options.config", "".join(f"{name}={value}\n" for name, value in options.items()))
    requested = _merged(make, [*fragments, own])
    if config == GUEST:
        settle(make, requested, brought)
    else:
        write_atomically(make.build / ".config", requested.read_bytes())
        make.run("configuring", "olddefconfig")
    shipped = _settings(_guest_text("guest.config")) if config == GUEST else {}
    _check_taken(make, requested.read_text(encoding="utf-8"), set(shipped), set(options))


def _fragments(make: Make, config: str) -> list[Path]:
    if config == GUEST:
        return [make.write_file(name, _guest_text(name)) for name in _SHIPPED]
    if config == DEFCONFIG:
        make.run("configuring", "x86_64_defconfig")
        return [make.write_file("defconfig.config", (make.build / ".config").read_text(encoding="utf-8"))]
    return [make.write_file("given.config", given_text(Path(config).expanduser()))]


def shipped_text(config: str) -> str:
    """What ktrial itself says about a configuration, for the key of a build."""
    return "".join(_guest_text(name) for name in _SHIPPED) if config == GUEST else ""


def _guest_text(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


def given_text(path: Path) -> str:
    """The content of a configuration file. Raises BadConfigFile."""
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise BadConfigFile(name=path, directory="", path=path, problem=error.strerror) from None
    except UnicodeDecodeError:
        raise BadConfigFile(name=path, directory="", path=path, problem="it is not text") from None
    if not _settings(text):
        raise BadConfigFile(name=path, directory="", path=path, problem="it sets no option")
    return text


def _merged(make: Make, fragments: list[Path]) -> Path:
    """The fragments in one file, the last word on each option kept. Raises BadConfigFile."""
    # A directory of its own, made anew: the script is the source's, and may write there only.
    place = make.home / "merge"
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir()
    for fragment in fragments:
        shutil.copy(fragment, place / fragment.name)
    (place / _REQUESTED).touch()
    # Names without directories: the script does not quote them.
    script = str(make.tree.directory / "scripts/kconfig/merge_config.sh")
    command = ["sh", "-c", 'cd "$0" && exec "$@"', str(place), script, "-m"]
    command += [fragment.name for fragment in fragments]
    environment = {**make.environment, "KCONFIG_CONFIG": _REQUESTED}
    confinement = make.confinement(place)
    done = subprocess.run(
        confinement.command(command, environment) if confinement else command,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )
    merged = place / _REQUESTED
    if done.returncode or not is_plain(merged):
        if confinement and (why := refusal_in(done.stderr)):
            raise SandboxFailed(name=make.called, directory=make.called, problem=why)
        problem = f"merge_config.sh fails: {(done.stderr.strip() or done.stdout.strip())[-300:]}"
        raise BadConfigFile(name=make.tree.directory, directory="", path=fragments[-1], problem=problem)
    return make.write_file(_REQUESTED, merged.read_text(encoding="utf-8", errors="replace"))


def _settings(text: str) -> dict[str, str]:
    """Option → value; `n` for one that is said not to be set."""
    return parse_config(text) | dict.fromkeys(_UNSET.findall(text), "n")


def _check_taken(make: Make, requested: str, shipped: set[str], asked: set[str]) -> None:
    """Raise OptionNotTaken for the first option that has to take and did not.

    An option of guest.config that this source does not know is older or newer than it.
    """
    final = _settings((make.build / ".config").read_text(encoding="utf-8"))
    refused = {
        name: value
        for name, value in _settings(requested).items()
        if name in shipped | asked and final.get(name, "n") != value
    }
    known = definitions(make.tree) if refused else {}
    for name, value in refused.items():
        if name in asked or name in known:
            raise unmet_dependencies(make, name, value, final, known)


FORMAT = 2
"""Part of every key: raised when what is resolved changes in another way than by its inputs."""


_READ = re.compile(
    r"(?:.*/)?(?:Kconfig|Makefile|Kbuild)[^/]*|scripts/.*|(?:arch/x86|kernel)/configs/.*|tools/(?:build|scripts)/.*"
    r"|.*\.sh|arch/x86/[^/]*"
)
"""Of some 80000 files, those that configuring reads."""


def read_of(paths: Collection[str]) -> list[str]:
    """Those of the paths that configuring reads."""
    return [path for path in paths if _READ.fullmatch(path)]


_KEPT_SOURCES = 12


def resolved(source: BuildSource, wanted: Build, compiler: Compiler, progress: Progress) -> str:
    """The text of the final .config.

    Raises NotASource, BadConfigFile, OptionNotTaken, CompilerUnsuitable, BuildToolsMissing, BuildFailed.
    """
    subset = _subset(source)
    given = _given(source, wanted, progress)
    brought = brought_by_patches(source)
    asked = [FORMAT, subset.digest, given or wanted.config, shipped_text(wanted.config), brought]
    key = digest([*asked, wanted.options, wanted.make, compiler.shown])
    kept = cache_directory() / "configs" / f"{key}.config"
    if not kept.exists():
        with _directory(source, subset, progress) as home:
            make = _make(home, wanted, progress)
            make.write_file(make.log.name, "")
            check_compiler(make.tree, wanted.source, compiler)
            shutil.rmtree(make.build, ignore_errors=True)
            make.build.mkdir()
            configure(make, wanted.config, wanted.options, given, brought)
            write_atomically(kept, (make.build / ".config").read_bytes())
    return kept.read_text(encoding="utf-8")


def menus(source: BuildSource, wanted: Build, progress: Progress = silent) -> Menus:
    """What the source says about its options. Raises NotASource."""
    with _directory(source, _subset(source), progress) as home:
        make = _make(home, wanted, progress)
        said = digest([FORMAT, compiler_words(wanted.make)])[:12]
        return menus_in(make.tree, wanted.make, home / f"menus-{said}.json")


def compiler_words(make: Mapping[str, str]) -> list[str]:
    """The variables that Kconfig's answers can depend on."""
    return [f"{name}={make[name]}" for name in ("CC", "LD", "LLVM") if name in make]


def _given(source: BuildSource, wanted: Build, progress: Progress) -> str:
    if wanted.config in {GUEST, DEFCONFIG}:
        return ""
    if wanted.config == DEBIAN:
        return debian_config(series_of(source.version()), progress)
    kept = content_kept(wanted.config_digest)
    return given_text(kept or Path(wanted.config))


def _subset(source: BuildSource) -> Manifest:
    files = source.manifest.files
    return Manifest({path: files[path] for path in read_of(files)})


def _make(home: Path, wanted: Build, progress: Progress) -> Make:
    tree = tree_in(home / "source")
    return Make(tree, home, progress, variables=wanted.make, called=wanted.source)


@contextmanager
def _directory(source: BuildSource, subset: Manifest, progress: Progress) -> Iterator[Path]:
    """A directory with the files that configuring reads, held."""
    sources = cache_directory() / "configs" / "sources"
    sources.mkdir(parents=True, exist_ok=True)
    home = sources / subset.digest[:24]
    with held(sources / f"{home.name}.lock", progress, "waiting for another ktrial that configures"):
        if not (home / "complete").exists():
            _sweep(sources)
            shutil.rmtree(home, ignore_errors=True)
            (home / "source").mkdir(parents=True)
            source.write(home / "source", subset.files, anew=False)
            (home / "complete").touch()
        (home / "complete").touch()
        yield home


def _sweep(sources: Path) -> None:
    """Keep the ones that were used last."""
    marks = sorted(sources.glob("*/complete"), key=lambda path: path.stat().st_mtime)
    for mark in marks[: max(0, len(marks) + 1 - _KEPT_SOURCES)]:
        with held_if_free(sources / f"{mark.parent.name}.lock") as free:
            if free:
                shutil.rmtree(mark.parent, ignore_errors=True)
