"""The objects of the files that a patch changes: made before all that includes them.

A patch to a header has most of a kernel compiled anew. Where its own files do not compile, or no longer
define a function that others call, that is certain long before make comes to it.
"""

import io
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from elftools.common.exceptions import ELFError
from elftools.elf.constants import SH_FLAGS
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection

from ktrial.kernels.build.errors import BuildFailed
from ktrial.kernels.build.make import Make

FEW_FILES = 12
"""With so few to compile, make comes to a patch's own ones soon enough."""
_MOST_NAMED = 4
_READ_BY_COMPILERS = re.compile(r"(?!scripts/|tools/).*\.[chS]|Documentation/.*|(?:.*/)?Kconfig[\w.-]*")
_COMPILER_ERROR = re.compile(r"^\S+:\d+(?::\d+)?: (?:fatal )?error: (?!.*: No such file)")
_COMPILED = re.compile(rb"-Wp,-MM?D,")
"""Not linked of others."""
_QUOTED = re.compile(r"[`'‘](\w+)['’]")


@dataclass(frozen=True)
class OwnObjects:
    """Those in a build directory that were compiled from files that have changed since."""

    build: Path
    paths: tuple[str, ...]
    """Below the build directory: `kernel/softirq.o`."""
    changed: frozenset[str]
    """All files that have changed, below the source's top."""
    had: Mapping[str, str] = field(default_factory=dict)
    """Functions that other files could call → the source file that defined them."""

    in_order: bool = True
    """Whether these can be made before all others: a new Makefile or script may make something first."""

    @classmethod
    def of(
        cls,
        build: Path,
        changed: Collection[str],
        patched: Collection[str] = (),
        others: Collection[Path] = (),
    ) -> "OwnObjects":
        """Those that the last build compiled, or tried to, before make changes them.

        `changed`: files that are not what that build had; `patched`: others that it may not have come to;
        `others`: directories of other builds, which know what is compiled of those.
        """
        both = frozenset((*changed, *patched))
        named = sorted(str(Path(path).with_suffix(".o")) for path in both if path.endswith((".c", ".S")))
        builds = (build, *others)
        paths = tuple(path for path in named if any(_noted(one / path).is_file() for one in builds))
        own = cls(build, paths, both, in_order=all(map(_READ_BY_COMPILERS.fullmatch, changed)))
        return replace(own, had=own._defined())

    def compile_first(self, make: Make) -> int:
        """Compile them, and return how many files that were.

        Raises BuildFailed where they do not compile, and where what they no longer define is missing for
        certain. Of other failures nothing is said: whether there is one, the whole build tells.
        """
        if not self.paths or not self.in_order:
            return 0
        try:
            files = make.run("building the patch's own files", *self.paths)
        except BuildFailed as error:
            if error.facts.get("killed") or _COMPILER_ERROR.match(str(error.facts.get("problem"))):
                raise
            return 0
        if missed := self._missed():
            raise self._failure(make, missed)
        return files

    def explained(self, error: BuildFailed) -> BuildFailed:
        """The same with what is known of the functions that it names."""
        problem = str(error.facts.get("problem"))
        gone = self._gone()
        named = [name for name in dict.fromkeys(_QUOTED.findall(problem)) if name in gone]
        if not named:
            return error
        said = "; ".join(f"{gone[name]} no longer has {name}{self._callers(name)}" for name in named)
        return BuildFailed(**{**error.facts, "problem": f"{problem}; {said}"})

    def _failure(self, make: Make, missed: Mapping[str, list[str]]) -> BuildFailed:
        name = make.called or str(make.tree.directory)
        said = "; ".join(
            f"{self.had[function]} no longer has {function}, which {_listed(callers)}"
            for function, callers in list(missed.items())[:_MOST_NAMED]
        )
        return BuildFailed(name=name, directory=name, problem=said, log=make.log, killed=False)

    def _defined(self) -> dict[str, str]:
        source_of: dict[str, str] = {}
        for path in self.paths:
            source_of.update(dict.fromkeys(functions(self.build / path)[0], self._source(path)))
        return source_of

    def _source(self, path: str) -> str:
        names = (str(Path(path).with_suffix(end)) for end in (".c", ".S"))
        return next((one for one in names if one in self.changed), path)

    def _gone(self) -> dict[str, str]:
        still = self._defined()
        return {name: place for name, place in self.had.items() if name not in still}

    def _missed(self) -> dict[str, list[str]]:
        """Functions that are gone → the objects that call them and that nothing will compile anew."""
        gone = self._gone()
        if not gone:
            return {}
        defined: set[str] = set()
        missed: dict[str, list[str]] = {}
        for path, content in self._others(gone):
            has, wants = functions_in(content)
            defined |= has
            if _is_kept(self.build / path, self.changed):
                for name in wants & gone.keys():
                    missed.setdefault(name, []).append(_source_of(path))
        return {name: sorted(callers) for name, callers in missed.items() if name not in defined}

    def _callers(self, name: str) -> str:
        callers = sorted(
            _source_of(path) for path, content in self._others([name]) if name in functions_in(content)[1]
        )
        return f", which {_listed(callers)}" if callers else ""

    def _others(self, names: Collection[str]) -> Iterator[tuple[str, bytes]]:
        """The compiled objects that know one of these names, with their contents."""
        wanted = [name.encode() + b"\0" for name in names]
        for noted in self.build.rglob(".*.o.cmd"):
            path = noted.with_name(noted.name.removeprefix(".").removesuffix(".cmd"))
            if not path.is_file() or not _COMPILED.search(noted.read_bytes()):
                continue
            content = path.read_bytes()
            if any(name in content for name in wanted):
                yield str(path.relative_to(self.build)), content


def functions(path: Path) -> tuple[set[str], set[str]]:
    """As `functions_in`, of a file; nothing where it is not there."""
    try:
        return functions_in(path.read_bytes())
    except OSError:
        return set(), set()


def functions_in(content: bytes) -> tuple[set[str], set[str]]:
    """Global functions that an object defines, and names that it wants of others; nothing of bitcode."""
    has, wants = set[str](), set[str]()
    try:
        elf = ELFFile(io.BytesIO(content))
        code = {
            number
            for number, section in enumerate(elf.iter_sections())
            if section["sh_flags"] & SH_FLAGS.SHF_EXECINSTR
        }
        for table in elf.iter_sections():
            if not isinstance(table, SymbolTableSection):
                continue
            for symbol in table.iter_symbols():
                if symbol.name and symbol["st_info"]["bind"] != "STB_LOCAL":
                    if symbol["st_shndx"] == "SHN_UNDEF":
                        wants.add(symbol.name)
                    elif symbol["st_shndx"] in code:
                        has.add(symbol.name)
    except ELFError:
        return set(), set()
    return has, wants


def _noted(path: Path) -> Path:
    return path.with_name(f".{path.name}.cmd")


def _is_kept(path: Path, changed: Collection[str]) -> bool:
    """Whether nothing that this object was compiled from has changed."""
    read = _noted(path).read_bytes().split()
    return not {f"../{one}".encode() for one in changed}.intersection(read)


def _source_of(path: str) -> str:
    return f"{path.removesuffix('.o')}.c"


def _listed(callers: list[str]) -> str:
    if len(callers) == 1:
        return f"{callers[0]} still calls"
    more = f" and {len(callers) - _MOST_NAMED} more" if len(callers) > _MOST_NAMED else ""
    return f"{len(callers)} files still call: {', '.join(callers[:_MOST_NAMED])}{more}"
