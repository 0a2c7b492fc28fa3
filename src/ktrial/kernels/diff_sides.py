"""Two kernels side by side: who they are, their options, their modules. Nothing is fetched or booted."""

import re
import tempfile
from pathlib import Path, PurePosixPath

from ktrial.kernels.build.build_spec import requested
from ktrial.kernels.build.patched_source import BuildSource, source_of
from ktrial.kernels.kconfig.config import config_of, read
from ktrial.kernels.kconfig.evaluator import Rules
from ktrial.kernels.kconfig.implied_options import ConfigSide
from ktrial.kernels.kconfig.parser import rules_in
from ktrial.kernels.modules.dependencies import builtin_names, module_names
from ktrial.kernels.progress import Progress, silent
from ktrial.model.kernel import Build, Kernel, KernelSide, ModuleChange

MODULE, BUILT_IN = "module", "built in"
_KERNEL_VERSION = re.compile(r"\d+\.\d+(?:\.\d+)*(?:-rc\d+)?")
_HOW = re.compile(r" \(.*\)$")
"""What a build's version says beside the commit."""


def side_of(kernel: Kernel) -> KernelSide:
    """Who a kernel is, by its record and its configuration."""
    origin, build, options = kernel.origin, kernel.origin.build, config_of(kernel)
    commit = _HOW.sub("", origin.version)
    packaged = origin.version if origin.provider not in {"build", "source"} else ""
    number = _KERNEL_VERSION.match(packaged.partition(":")[2] or packaged or kernel.release)
    return KernelSide(
        name=kernel.name,
        release=kernel.release,
        version=number[0] if number else kernel.release,
        package=packaged,
        source=" ".join(filter(None, (build.source if build else origin.source, commit))),
        digest=kernel.digest,
        compiler=options.get("CONFIG_CC_VERSION_TEXT", origin.compiler),
        flags=build.make if build else {},
        patches=build.patches if build else (),
        command_line=options.get("CONFIG_CMDLINE", ""),
        built=build is not None,
    )


def known_of(kernel: Kernel, rules: Rules | None) -> ConfigSide | None:
    """A kernel's options, with what is known about them; None where its configuration is not known."""
    if kernel.config is None:
        return None
    config = config_of(kernel)
    text = kernel.config.read_text(encoding="utf-8", errors="replace")
    return ConfigSide(config, read(text), rules) if config else None


def modules_known(kernel: Kernel) -> bool:
    """Whether its modules came with it, and depmod's lists with them."""
    return bool(_modules(kernel))


def changed_modules(before: Kernel, after: Kernel) -> tuple[ModuleChange, ...]:
    """Modules that only one of the two has, or that one of them has built in; by name."""
    old, new = _modules(before), _modules(after)
    return tuple(
        ModuleChange(name=name, before=old.get(name, ""), after=new.get(name, ""))
        for name in sorted(old.keys() | new.keys())
        if old.get(name) != new.get(name)
    )


def _modules(kernel: Kernel) -> dict[str, str]:
    files = dict.fromkeys(module_names(kernel), MODULE)
    return dict.fromkeys(builtin_names(kernel), BUILT_IN) | files


_rules: dict[str, Rules] = {}
"""By the digest of all the source's files: reading takes seconds, and two builds mostly share one source."""


_MOST_KEPT = 4


def rules_of_kernel(kernel: Kernel, progress: Progress = silent) -> Rules | None:
    """What Kconfig asks for in the kernel's own source; None where that is not known.

    Raises SourceUnusable, and what obtaining the source raises.
    """
    if kernel.origin.build is not None:
        return rules_of_build(kernel.origin.build, progress)
    if kernel.origin.provider == "source" and Path(kernel.origin.source).is_dir():
        return rules_of_build(Build(source=kernel.origin.source), progress)
    return None


def rules_of_source(source: str, progress: Progress = silent) -> Rules:
    """What Kconfig asks for in a source that a user names, relative to the directory that we are in.

    Raises SourceUnusable, NotASource, NoSuchSource, FetchFailed and other KernelErrors.
    """
    return rules_of_build(requested(source, directory=Path.cwd()), progress)


def rules_of_build(wanted: Build, progress: Progress = silent) -> Rules:
    """What Kconfig asks for in the source of a build, with its patches.

    Raises what `rules_of_source` raises, BadPatch, PatchNotApplied.
    """
    with tempfile.TemporaryDirectory(prefix="ktrial-kconfig-") as scratch:
        patching, files = Path(scratch) / "patching", Path(scratch) / "files"
        patching.mkdir()
        source = source_of(wanted, patching, progress)
        key = source.manifest.digest
        if key not in _rules:
            progress("reading Kconfig")
            rules = rules_in(_directory(source, files))
            while len(_rules) >= _MOST_KEPT:
                del _rules[next(iter(_rules))]
            _rules[key] = rules
        return _rules[key]


def _directory(source: BuildSource, files: Path) -> Path:
    """Where its Kconfig files lie: in the cache's own copy, or in `files`, made for it."""
    if source.snapshot.unchanging and not source.overlay.files:
        return source.snapshot.directory
    wanted = (path for path in source.manifest.files if PurePosixPath(path).name.startswith("Kconfig"))
    files.mkdir()
    source.write(files, wanted, anew=False)
    return files
