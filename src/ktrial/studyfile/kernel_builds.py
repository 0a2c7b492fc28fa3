"""Checks the kernels that a study describes, and that what its factors change about builds fits them."""

import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TypedDict, Unpack

from ktrial.kernels.errors import BuildError
from ktrial.model.design import AS_IT_IS, BUILD_KINDS, Factor, FactorKind, LevelValue, Treatment
from ktrial.model.kernel import Build, BuildChange, Patch
from ktrial.model.study import Study, treatments
from ktrial.studyfile.diagnostics import KeyPath, Mistakes, shown
from ktrial.studyfile.references import Registry
from ktrial.studyfile.tables import KernelTable

FLAGS = "KCFLAGS"
"""The variable of make that adds flags to those that the kernel's own Makefiles give the compiler."""
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,63}")
_LONGEST_NAMES = 40
"""Characters of a level that names several patches; a longer one is shortened."""
_ANY_SOURCE = "debian:linux-source-6.1"
"""Options, patches and flags are read in the same way whatever the source is."""


class _Parts(TypedDict, total=False):
    """What `Requests` takes beside the source."""

    config: str
    options: Mapping[str, str]
    patches: Sequence[str]
    make: Mapping[str, str]
    fuzz: int


class BuildReader:
    """Makes Builds and Changes of what a study says."""

    def __init__(self, registry: Registry, directory: Path, mistakes: Mistakes) -> None:
        self._registry = registry
        self._directory = directory
        self._mistakes = mistakes

    def builds(self, tables: Mapping[str, KernelTable], source: Factor | None) -> dict[str, Build]:
        """The study's kernels by name; `source` is the factor that changes where they come from."""
        builds = {}
        for name, table in tables.items():
            if not _NAME.fullmatch(name) or name == "host":
                self._mistakes.add(
                    ("kernels", name), "another name: letters, digits, ., _, + and -, and not host"
                )
            text = self._source(name, table, source)
            if build := text and self._build(name, table, text):
                builds[name] = build
        return builds

    def changes(
        self, kind: FactorKind, target: str, levels: Sequence[LevelValue], path: KeyPath
    ) -> dict[LevelValue, BuildChange]:
        """Level → what it changes, without those that change nothing."""
        changes: dict[LevelValue, BuildChange] = {}
        for index, level in enumerate(levels):
            change = self._change(kind, target, level, (*path, "levels", index))
            if change is None or change == BuildChange():
                continue
            same = [
                earlier
                for earlier, earlier_change in changes.items()
                if earlier_change == change and earlier != level
            ]
            if same:
                problem = f"{shown(level)} and {shown(same[0])} are the same"
                self._mistakes.add((*path, "levels", index), problem)
            changes[level] = change
        return changes

    def _source(self, name: str, table: KernelTable, factor: Factor | None) -> str:
        """Where the kernel's source is; with a factor, at the factor's baseline."""
        if factor and table.source:
            problem = f"the source is the factor {factor.name}, and fixed here too: it can be one only"
            self._mistakes.add(("kernels", name, "source"), problem)
        if not factor and not table.source:
            allowed = KernelTable.model_fields["source"].description
            self._mistakes.add(("kernels", name), f'the key "source" is missing: {allowed}')
        return str(factor.baseline) if factor else table.source

    def _build(self, name: str, table: KernelTable, source: str) -> Build | None:
        """Each part alone first: a mistake is told with its own key."""
        path: KeyPath = ("kernels", name)
        where = self._asked((*path, "source"), source=source)
        parts = [self._asked((*path, "config"), source=source, config=table.config)] if where else []
        for option, value in table.options.items():
            parts.append(self._asked((*path, "options", option), options={option: str(value)}))
        for index, patch in enumerate(table.patches):
            parts.append(self._asked((*path, "patches", index), patches=[patch]))
        for variable, text in table.make.items():
            parts.append(self._asked((*path, "make", variable), make={variable: text}))
        if not where or None in parts:
            return None
        options = {option: str(value) for option, value in table.options.items()}
        build = self._asked(
            path,
            source=source,
            config=table.config,
            options=options,
            patches=table.patches,
            make=table.make,
            fuzz=table.fuzz,
        )
        self._check_patches(build.patches if build else (), (*path, "patches"))
        if build and len(build.options) < len(options):
            self._mistakes.add((*path, "options"), "an option is here twice: with CONFIG_ and without")
        return build

    def _check_patches(self, patches: Sequence[object], path: KeyPath) -> None:
        digests = [getattr(patch, "digest", "") for patch in patches]
        for index, digest in enumerate(digests):
            if digest in digests[:index]:
                self._mistakes.add((*path, index), "the same patch is here twice")

    def _change(self, kind: FactorKind, target: str, level: LevelValue, path: KeyPath) -> BuildChange | None:
        if level == AS_IT_IS:
            return None
        if kind is FactorKind.KCONFIG:
            return self._options(target, level, path)
        if not isinstance(level, str):
            self._mistakes.wrong(path, level, _ALLOWED[kind])
            return None
        if kind is FactorKind.PATCH:
            build = self._asked(path, patches=self._words(level, path))
            self._check_patches(build.patches if build else (), path)
            return BuildChange(patches=build.patches) if build else None
        if kind is FactorKind.SOURCE:
            if not level:
                self._mistakes.wrong(path, level, _ALLOWED[kind])
                return None
            build = self._asked(path, source=level)
            return BuildChange(source=build.source) if build else None
        build = self._asked(path, make={FLAGS: level} if level.strip() else {})
        return BuildChange(make=build.make) if build else None

    def _options(self, target: str, level: LevelValue, path: KeyPath) -> BuildChange | None:
        """`SLAB=y SLUB_DEBUG=n`; or, with a target, the option's value alone. An empty level sets nothing."""
        words = [f"{target}={level}"] if target else self._words(str(level), path)
        if level == "":
            words = []
        options: dict[str, str] = {}
        for word in words:
            name, equals, value = word.partition("=")
            if not equals:
                self._mistakes.wrong(path, level, _ALLOWED[FactorKind.KCONFIG])
                return None
            build = self._asked(path, options={name: value})
            if build is None:
                return None
            for option in build.options.keys() & options.keys():
                self._mistakes.add(path, f"{option} is here twice")
            options |= build.options
        return BuildChange(options=options)

    def _words(self, level: str, path: KeyPath) -> list[str]:
        try:
            return shlex.split(level)
        except ValueError as error:
            self._mistakes.add(path, f"found {shown(level)}: {str(error).lower()}")
            return []

    def _asked(self, path: KeyPath, source: str = _ANY_SOURCE, **parts: Unpack[_Parts]) -> Build | None:
        """What that asks for; None where it is refused, which is then noted."""
        try:
            return self._registry.build(source=source, directory=self._directory, **parts)
        except BuildError as error:
            message = error.message.removesuffix(".")
            self._mistakes.add(path, "; ".join(filter(None, (message, error.advice))))
            return None


_ALLOWED = {
    FactorKind.KCONFIG: 'options with their values, as text: "SLAB=y", "SLUB=y SLUB_DEBUG=n", or ""',
    FactorKind.PATCH: 'files, separated by blanks, as text: "my.patch", or ""',
    FactorKind.SOURCE: 'a source, as text: "debian:linux-source-6.1", a directory, a tarball',
    FactorKind.COMPILER_FLAGS: 'flags of the compiler, as text: "-O3", or ""',
}


def lists_options(levels: Sequence[LevelValue]) -> bool:
    """Whether a factor's levels name options themselves, so that the factor's name is no option."""
    return any("=" in str(level) for level in levels)


def short_levels(factor: Factor) -> dict[LevelValue, LevelValue]:
    """Level as written → as it is called: patches by their files' names, a source by its whole path.

    The shortest names that tell the factor's levels apart; the details have the paths.
    """
    if factor.kind is FactorKind.SOURCE:
        return {level: change.source for level, change in factor.changes.items()}
    if factor.kind is not FactorKind.PATCH:
        return {}
    for called in (_first_patch, _patch_names, _patch_places):
        names: dict[LevelValue, LevelValue] = {
            level: called(change) for level, change in factor.changes.items()
        }
        if len(set(names.values())) == len(names):
            return names
    return {level: patch_level(change) for level, change in factor.changes.items()}


def _patch_names(change: BuildChange) -> str:
    return " ".join(map(_file, change.patches))


def _first_patch(change: BuildChange) -> str:
    """All files where they are short, else the first, and how many more: it is in every row."""
    names = _patch_names(change)
    if len(change.patches) == 1 or len(names) <= _LONGEST_NAMES:
        return names
    return f"{_file(change.patches[0])} and {len(change.patches) - 1} more"


def _patch_places(change: BuildChange) -> str:
    """With the directories that they lie in."""
    return " ".join("/".join(patch.path.split("/")[-2:]) for patch in change.patches)


def patch_level(change: BuildChange) -> str:
    """The level of a factor of kind `patch` that asks for this, wherever the study file is."""
    return shlex.join(patch.path for patch in change.patches)


def check_builds(study: Study, mistakes: Mistakes) -> None:
    """Note what contradicts itself. The study has no other mistake."""
    changing = [factor for factor in study.factors if factor.kind in BUILD_KINDS]
    _check_named(study, mistakes)
    _check_different(study.builds, mistakes)
    _check_once(study.builds, changing, mistakes)
    if changing:
        _check_built(study, changing, mistakes)


def _check_named(study: Study, mistakes: Mistakes) -> None:
    """A kernel that no treatment has would never be built."""
    levels = {
        str(level) for factor in study.factors if factor.kind is FactorKind.KERNEL for level in factor.levels
    }
    for name in study.builds.keys() - levels - {study.machine.kernel}:
        mistakes.add(
            ("kernels", name),
            f'nothing names this kernel: [machine] kernel = "{name}", or make it a level of [factors.kernel]',
        )


def _check_different(builds: Mapping[str, Build], mistakes: Mistakes) -> None:
    names: dict[str, str] = {}
    for name, build in builds.items():
        first = names.setdefault(build.key, name)
        if first != name:
            mistakes.add(("kernels", name), f"{shown(name)} and {shown(first)} are the same kernel")


def _check_once(builds: Mapping[str, Build], factors: Iterable[Factor], mistakes: Mistakes) -> None:
    """What one factor decides, no other may, nor a kernel's table."""
    decided: dict[str, str] = {}
    for name, build in builds.items():
        for decision in _decides(build):
            decided.setdefault(decision, f"the kernel {name}")
    for factor in factors:
        path: KeyPath = ("factors", factor.name)
        me = f"the factor {factor.name}"
        for decision in dict.fromkeys(
            decision for change in factor.changes.values() for decision in _decides(change)
        ):
            decider = decided.setdefault(decision, me)
            if decider != me:
                mistakes.add(path, f"{decider} decides about {decision} already: it can be one only")


def _decides(build: Build | BuildChange) -> list[str]:
    """What it settles, in words: options, variables of make, patches."""
    return [
        *(f"the option {name}" for name in build.options),
        *(f"{name} of make" for name in build.make),
        *(f"the patch {_file(patch)} (content {patch.digest[:12]})" for patch in build.patches),
    ]


def _file(patch: Patch) -> str:
    return patch.path.rpartition("/")[2]


def _check_built(study: Study, changing: list[Factor], mistakes: Mistakes) -> None:
    """A kernel that is fetched cannot be changed."""
    kernel = next((factor for factor in study.factors if factor.kind is FactorKind.KERNEL), None)
    for treatment in treatments(study):
        name = str(treatment.levels[kernel.name]) if kernel else study.machine.kernel
        changed = _changed_by(treatment, changing)
        if name in study.builds or not changed:
            continue
        path: KeyPath = ("machine", "kernel")
        if kernel:
            path = ("factors", kernel.name, "levels", kernel.levels.index(name))
        mistakes.add(
            path,
            f"the factor {changed.name} changes how a kernel is built, and {shown(name)} is not built here: "
            'name a table, [kernels.mine] with source = "debian:linux-source-6.1"',
        )


def _changed_by(treatment: Treatment, factors: Iterable[Factor]) -> Factor | None:
    """The first factor whose level in this treatment changes a build."""
    return next((factor for factor in factors if str(treatment.levels[factor.name]) in factor.changes), None)
