"""Build a kernel, and keep it in the cache under the name of its source: `source:/home/me/linux`.

<cache>/builds/<directory's name>-<hash of its path>/
    build/                make's O=: kept, so that the next build compiles what changed
    build.log             what make printed the last time
    typical.config, guest.config, options.config, requested.config
    lock
    unfinished            there while make runs, and after it was killed or failed
"""

import hashlib
import shutil
from pathlib import Path

from ktrial.kernels.build.build_spec import BuildRequest
from ktrial.kernels.build.build_tools import asked_options, check_tools
from ktrial.kernels.build.build_trees import files_compiled
from ktrial.kernels.build.configuration import configure
from ktrial.kernels.build.interrupted_build import mend
from ktrial.kernels.build.make import Make, check_products
from ktrial.kernels.build.source_tree import Tree, check_clean, tree_in
from ktrial.kernels.build.time_estimate import expected_files
from ktrial.kernels.cache.cache import Cache, disk_usage
from ktrial.kernels.cache.disk_space import file_system_errors, require_space
from ktrial.kernels.cache.location import cache_directory
from ktrial.kernels.cache.locks import held, held_if_free
from ktrial.kernels.kconfig.config import parse_config
from ktrial.kernels.progress import Progress, silent
from ktrial.kernels.providers.protocol import Parts
from ktrial.model.kernel import Kernel, Origin

PREFIX = "source"
_LOCK = "lock"
_UNFINISHED = "unfinished"
"""There while make runs: who finds it there comes after a build that was killed, or failed."""
_TARGET = "vmlinux"
"""Enough to boot: the guest starts from it. A bzImage would only be packed to be unpacked again."""
_BYTES_OF_A_BUILD = 500 << 20


def add(wanted: BuildRequest, progress: Progress = silent) -> Kernel:
    """Build the kernel that is wanted, and return it as it is kept in the cache.

    Only what changed since the last build of the same directory is compiled. The same source, configuration
    and compiler give the same kernel, to the last bit.
    Raises NotASource, SourceNotClean, BuildToolsMissing, BadConfigFile, OptionNotTaken, BuildFailed,
    CacheFull and other KernelErrors.
    """
    cache, name = Cache(), name_of(wanted.source)
    with file_system_errors(cache.root), cache.adding(name, progress), cache.workspace() as workspace:
        return cache.store(name, built(wanted, workspace, progress), workspace, progress)


def check_request(wanted: BuildRequest) -> None:
    """Find what can be found without work.

    Raises NotASource, SourceNotClean, BadConfigFile.
    """
    check_clean(tree_in(wanted.source))
    asked_options(wanted.config, dict(wanted.options))


def built(wanted: BuildRequest, workspace: Path, progress: Progress) -> Parts:
    """Build the kernel that is wanted, and copy its parts into the directory `workspace`. Raises as `add`."""
    check_request(wanted)
    tree = tree_in(wanted.source)
    check_tools(tree.directory, asked_options(wanted.config, dict(wanted.options)))
    home = build_directory(tree.directory)
    with file_system_errors(home):
        home.mkdir(parents=True, exist_ok=True)
        # The parts are copied before the next build may change them.
        with held(home / _LOCK, progress, "waiting for another ktrial that builds here"):
            make = Make(tree, home, progress)
            _build(make, wanted)
            return _parts(make, wanted, workspace)


def build_directory(source: Path) -> Path:
    """Where the builds of a source directory are kept."""
    key = hashlib.sha256(str(source).encode()).hexdigest()[:12]
    return cache_directory() / "builds" / f"{source.name}-{key}"


def forget(source: Path) -> int:
    """Delete what was built from a source directory, but for the lock; return how many bytes that freed.

    Where another ktrial is building there, nothing is deleted.
    """
    home = build_directory(source)
    if not home.is_dir():
        return 0
    with file_system_errors(home), held_if_free(home / _LOCK) as free:
        if not free:
            return 0
        freed = disk_usage(home)
        for path in home.iterdir():
            if path.is_dir():
                shutil.rmtree(path)
            elif path.name != _LOCK:
                path.unlink()
        return freed


def name_of(source: Path) -> str:
    """What the kernel is called that was built from this directory."""
    return f"{PREFIX}:{source.expanduser().absolute().resolve()}"


def _build(make: Make, wanted: BuildRequest) -> None:
    make.write_file(make.log.name, "")
    make.build.mkdir(exist_ok=True)
    anew = not (make.build / _TARGET).exists()
    if anew:
        require_space(make.home, _BYTES_OF_A_BUILD)
    unfinished = make.home / _UNFINISHED
    if unfinished.exists():
        mend(make.build)
    unfinished.touch()
    configure(make, wanted.config, dict(wanted.options))
    config = (make.build / ".config").read_text(encoding="utf-8")
    check_tools(make.tree.directory, parse_config(config))
    # What a build after a change compiles, nobody knows before make has looked.
    there = files_compiled(make.build)
    make.run("building", _TARGET, expected=max(0, expected_files(config) - there) if anew else 0)
    unfinished.unlink()


def _parts(make: Make, wanted: BuildRequest, workspace: Path) -> Parts:
    names = (_TARGET, ".config", "System.map")
    check_products(make, names)
    image, config, system_map = (Path(shutil.copy(make.build / name, workspace / name)) for name in names)
    return Parts(image=image, config=config, system_map=system_map, origin=_origin(make.tree, wanted))


def _origin(tree: Tree, wanted: BuildRequest) -> Origin:
    how = " ".join([wanted.config, *(f"{name}={value}" for name, value in wanted.options)])
    commit = tree.commit() or tree.version
    return Origin(provider=PREFIX, source=str(tree.directory), version=f"{commit} ({how})")
