"""Make a build's .config: fragments, merged by the kernel's own merge_config.sh, resolved by its own kconfig.

`guest` is the smallest useful configuration: guest.config (all of it has to take) over typical.config (what
the source has of it), all else off. Others start from defconfig or from a file, and what they do not name
has its default. Options that patches bring, or commits since the release, have their own defaults in all of
them: a change whose author switches it on would not be in the kernel at all in a configuration that has all
else off. The user's options come last, and have to take.
"""

import re
import shutil
import subprocess
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib.resources import files
from pathlib import Path

from ktrial.installation import cache_directory
from ktrial.kernels import Progress, silent
from ktrial.kernels.build.debian_sources import debian_config, of_distributors, series_of
from ktrial.kernels.build.make import Compiler, Make, check_compiler
from ktrial.kernels.build.patches import BuildSource
from ktrial.kernels.build.reached import not_held, options_of, reached, without_modules
from ktrial.kernels.build.recipes import Manifest, content_kept
from ktrial.kernels.build.sandbox import is_plain, refusal_in
from ktrial.kernels.build.sources import Snapshot, Tree, manifest_at, manifest_of, release_commit, tree_in
from ktrial.kernels.config import parse_config, read
from ktrial.kernels.errors import BadConfigFile, SandboxFailed
from ktrial.kernels.files import write_atomically
from ktrial.kernels.kconfig_menus import (
    definitions,
    is_read_for_x86,
    menus_in,
    options_defined,
    unmet_dependencies,
)
from ktrial.kernels.kernel_cache import held, held_if_free
from ktrial.model.base import digest
from ktrial.model.kernel import DEBIAN, DEFCONFIG, GUEST, REACHED, Build, Menus, NewOption
from ktrial.text_lines import lines_of

_REQUESTED = "requested.config"
_SHIPPED = ("typical.config", "guest.config")
_UNSET = re.compile(r"^# (CONFIG_\w+) is not set$", re.MULTILINE)


def configure(
    make: Make, config: str, options: Mapping[str, str], base_text: str = "", brought: Collection[str] = ()
) -> None:
    """Write the build directory's .config. Raises BadConfigFile, OptionNotTaken, BuildFailed.

    `base_text`: the text of the configuration, where it is neither ktrial's own nor the source's. `brought`:
    options that are new in the source.
    """
    fragments = [make.write_file("given.config", base_text)] if base_text else _fragments(make, config)
    user_fragment = make.write_file(
        "options.config", "".join(f"{name}={value}\n" for name, value in options.items())
    )
    requested = _merged(make, [*fragments, user_fragment])
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
        raise BadConfigFile(path=path, problem=error.strerror) from None
    except UnicodeDecodeError:
        raise BadConfigFile(path=path, problem="it is not text") from None
    if not _settings(text):
        raise BadConfigFile(path=path, problem="it sets no option")
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
    finished = subprocess.run(
        confinement.command(command, environment) if confinement else command,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )
    merged = place / _REQUESTED
    if finished.returncode or not is_plain(merged):
        if confinement and (why := refusal_in(finished.stderr)):
            raise SandboxFailed(directory=make.called, problem=why)
        problem = f"merge_config.sh fails: {(finished.stderr.strip() or finished.stdout.strip())[-300:]}"
        raise BadConfigFile(path=fragments[-1], problem=problem)
    return make.write_file(_REQUESTED, merged.read_text(encoding="utf-8", errors="replace"))


def _settings(text: str) -> dict[str, str]:
    """Option → value; `n` for one that is said not to be set."""
    return parse_config(text) | dict.fromkeys(_UNSET.findall(text), "n")


def _check_taken(make: Make, requested: str, shipped: set[str], user_options: set[str]) -> None:
    """Raise OptionNotTaken for the first option that has to take and did not.

    An option of guest.config that this source does not know is older or newer than it.
    """
    final = _settings((make.build / ".config").read_text(encoding="utf-8"))
    refused = {
        name: value
        for name, value in _settings(requested).items()
        if name in shipped | user_options and final.get(name, "n") != value
    }
    defined = definitions(make.tree) if refused else {}
    for name, value in refused.items():
        if name in user_options or name in defined:
            raise unmet_dependencies(make, name, value, final, defined)


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


@dataclass(frozen=True)
class Resolved:
    """What a source and a configuration come to."""

    text: str
    """Of the final .config."""
    not_held: tuple[str, ...] = ()
    """As in `Origin`."""


def resolved(source: BuildSource, spec: Build, compiler: Compiler, progress: Progress) -> Resolved:
    """The final configuration.

    Raises NotASource, BadConfigFile, OptionNotTaken, CompilerUnsuitable, BuildToolsMissing, BuildFailed.
    """
    subset = _subset(source)
    base_text = _base_text(source, spec, progress)
    brought = new_options(source)
    inputs = [FORMAT, subset.digest, base_text or spec.config, shipped_text(spec.config), brought]
    if spec.is_reached:
        inputs += [REACHED, _guest_text("guest.config"), sorted(options_touched(source, spec))]
    key = digest([*inputs, spec.options, spec.make, compiler.shown])
    cached = cache_directory() / "configs" / f"{key}.config"
    lost = cached.with_suffix(".lost")
    if not cached.exists():
        with _directory(source, subset, progress) as home:
            make = _make(home, spec, progress)
            make.write_file(make.log.name, "")
            check_compiler(make.tree, spec.source, compiler)
            shutil.rmtree(make.build, ignore_errors=True)
            make.build.mkdir()
            if spec.is_reached:
                write_atomically(lost, "\n".join(_reach(make, home, source, spec, base_text, brought)))
            else:
                configure(make, spec.config, spec.options, base_text, brought)
            write_atomically(cached, (make.build / ".config").read_bytes())
    names = lost.read_text(encoding="utf-8").split() if spec.is_reached and lost.exists() else ()
    return Resolved(cached.read_text(encoding="utf-8"), tuple(names))


def _reach(
    make: Make, home: Path, source: BuildSource, spec: Build, text: str, brought: Collection[str]
) -> tuple[str, ...]:
    """Write the .config of what can be reached, and return the options that did not hold. Raises as
    `resolved`.
    """
    options = _menus(make, home, spec)
    plan = reached(text, _guest_text("guest.config"), options_touched(source, spec), options)
    make.progress(str(plan))
    configure(make, spec.config, spec.options, plan.text, brought)
    config = make.build / ".config"
    for _ in range(_MOST_ROUNDS):
        present = config.read_text(encoding="utf-8")
        without = without_modules(present, spec.options)
        if without == present:
            break
        write_atomically(config, without)
        make.run("configuring", "olddefconfig")
    final = parse_config(config.read_text(encoding="utf-8"))
    off = {*plan.off, *_settings(of_distributors()), *spec.options}
    return not_held(parse_config(plan.text), final, off, options)


def options_touched(source: BuildSource, spec: Build) -> set[str]:
    """The options, `CONFIG_…`, for which the files are compiled that the build is to reach."""
    if not spec.touched:
        return set()
    files = source.manifest.files
    with source.snapshot.reader() as reader:
        return options_of(
            spec.touched,
            lambda path: source.content(reader, path).decode(errors="replace") if path in files else None,
        )


def menus(source: BuildSource, spec: Build, progress: Progress = silent) -> Menus:
    """What the source says about its options. Raises NotASource."""
    with _directory(source, _subset(source), progress) as home:
        return _menus(_make(home, spec, progress), home, spec)


def _menus(make: Make, home: Path, spec: Build) -> Menus:
    # The variables that Kconfig's answers can depend on.
    words = [f"{name}={spec.make[name]}" for name in ("CC", "LD", "LLVM") if name in spec.make]
    key = digest([FORMAT, words])[:12]
    return menus_in(make.tree, spec.make, home / f"menus-{key}.json")


def _base_text(source: BuildSource, spec: Build, progress: Progress) -> str:
    if spec.config in {GUEST, DEFCONFIG}:
        return ""
    if spec.config == DEBIAN:
        return debian_config(series_of(source.version()), progress)
    if not spec.config_digest:
        return debian_config(spec.config.removeprefix(f"{DEBIAN}:"), progress)
    text = given_text(content_kept(spec.config_digest) or Path(spec.config_file))
    return text + of_distributors() if spec.is_reached else text


def _subset(source: BuildSource) -> Manifest:
    return source.manifest.part(_READ)


def _make(home: Path, spec: Build, progress: Progress) -> Make:
    tree = tree_in(home / "source")
    # Kconfig's own programs are compiled there, from files that may be a patch's.
    return Make(tree, home, progress, variables=spec.make, called=spec.source, ccache=home / "ccache")


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
            source.write(home / "source", subset.files, rewrite=False)
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


# Options that patches or commits bring: which they are, their own defaults, what they became.

_MOST_ROUNDS = 8
"""Each round settles at least the options that depend on those that were settled before."""


def new_options(source: BuildSource) -> tuple[str, ...]:
    """The options, `CONFIG_…`, that the source defines and the older one does not, sorted.

    The older one is the commit that it is counted from (`Build.since`), else the source without its patches:
    without either there are none. Raises SourceUnusable where git does not have the commit.
    """
    snapshot, files = source.snapshot, source.manifest.files
    older = snapshot
    if source.since:
        commit = manifest_at(snapshot.directory, source.since)
        older = replace(snapshot, manifest=commit, repository=True, revision=source.since)
    before = older.manifest.files
    differing = set(filter(is_read_for_x86, source.manifest.differing(older.manifest)))
    if not differing.intersection(files):
        return ()
    with snapshot.reader() as reader, older.reader() as old:
        new = _all(source.content(reader, path) for path in differing if path in files)
        new -= _all(old.content(path) for path in differing if path in before)
        if new:  # unless it was moved from a file that is as it was
            new -= _all(
                old.content(path) for path in filter(is_read_for_x86, before) if path not in differing
            )
    return tuple(sorted(new))


def new_options_in(tree: Tree) -> tuple[str, ...]:
    """The same of a directory as it is now, counted from the release that it stands on."""
    since = release_commit(str(tree.directory))
    if not since:
        return ()
    kconfig = manifest_of(tree.directory, taken=is_read_for_x86)
    return new_options(BuildSource(Snapshot(str(tree.directory), kconfig, tree.directory), since=since))


def became(brought: Iterable[str], config: str) -> tuple[NewOption, ...]:
    """What the options became in the text of a final configuration."""
    set_, offered = parse_config(config), read(config)
    values = {name: set_.get(name, "n" if offered.mentions(name) else "") for name in brought}
    return tuple(NewOption(option=name, value=value) for name, value in values.items())


def settle(make: Make, requested: Path, brought: Collection[str]) -> None:
    """Resolve allnoconfig over the fragment `requested`; options in `brought` that it leaves open have their
    own defaults.

    The kernel's kconfig knows the defaults (olddefconfig); what else those options make room for is off, as
    all in allnoconfig is. An option that depends on another one that was off is settled in the next round.
    Raises BuildFailed.
    """
    fragment_text = requested.read_text(encoding="utf-8")
    named = _about(brought, fragment_text)
    defaults: dict[str, str] = {}
    for _ in range(_MOST_ROUNDS):
        text = fragment_text + "".join(f"{line}\n" for line in defaults.values())
        fragment = make.write_file("with-defaults.config", text)
        make.run("configuring", f"KCONFIG_ALLCONFIG={fragment}", "allnoconfig")
        resolved = _defaults(make, brought, named) if brought else {}
        if resolved == defaults:
            return
        defaults = resolved


def _defaults(make: Make, brought: Collection[str], named: Mapping[str, str]) -> dict[str, str]:
    """The lines that olddefconfig writes about options that nobody named; the .config stays as it is."""
    config = make.build / ".config"
    present = config.read_text(encoding="utf-8")
    lines = [line for line in lines_of(present) if _option(line) not in brought]
    write_atomically(config, "".join(f"{line}\n" for line in (*lines, *named.values())))
    make.run("configuring", "olddefconfig")
    resolved = config.read_text(encoding="utf-8")
    write_atomically(config, present)
    return {name: line for name, line in _about(brought, resolved).items() if name not in named}


def _about(options: Collection[str], config: str) -> dict[str, str]:
    """Option → the last line about it in the text of a configuration."""
    return {name: line for line in lines_of(config) if (name := _option(line)) in options}


def _option(line: str) -> str:
    """The option that a line of a configuration is about; empty where it is about none."""
    word = line.removeprefix("# ").partition("=")[0].partition(" ")[0].strip()
    return word if word.startswith("CONFIG_") else ""


def _all(texts: Iterable[bytes]) -> set[str]:
    return set[str]().union(*(options_defined(text.decode(errors="replace")) for text in texts))
