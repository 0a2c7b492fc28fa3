"""A series of patches over one source: what is searched by `ktrial bisect patches`.

Prefixes of the series are the candidates first, as in git bisect. A patch that does not apply alone requires
the earlier ones that touch the same files; one that applies alone but does not compile is found to need
others by the search.
"""

from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from ktrial.bisect.config_options import Builder, built
from ktrial.bisect.errors import BadSeries
from ktrial.bisect.knobs import subset_label
from ktrial.bisect.measurement import Setup
from ktrial.bisect.plan import NOTHING, Items, Subset
from ktrial.bisect.result import FoundItem
from ktrial.kernels import Progress, silent
from ktrial.kernels.build.errors import PatchNotApplied
from ktrial.kernels.build.patches import paths_in, text_of
from ktrial.kernels.errors import KernelError
from ktrial.model.kernel import Build, Patch

_SUFFIXES = {".patch", ".diff"}
_SERIES = "series"


@dataclass
class PatchGround:
    """Subsets of a series, applied in its order over one source."""

    source: Build
    """Without the series: A."""
    series: tuple[Patch, ...]
    builder: Builder
    progress: Progress = silent
    fuzz: int = 0
    """How many lines at the edges of a patch's hunk may differ from the source's."""
    compiled: int = 0
    notes: list[str] = field(default_factory=list)

    @property
    def names(self) -> list[str]:
        """The patches' file names."""
        return [Path(patch.path).name for patch in self.series]

    @cached_property
    def items(self) -> Items:
        """One for each patch. Raises BadPatch, and what looking at the source raises."""
        files = [set(paths_in(patch.path, text_of(patch))) for patch in self.series]
        requires: dict[int, Subset] = {}
        for item in range(len(self.series)):
            if not self._applies(frozenset({item})):
                same = frozenset(one for one in range(item) if files[one] & files[item])
                closed = Items(item + 1, {**requires, item: same}).closed({item})
                requires[item] = same if self._applies(closed) else frozenset(range(item))
        return Items(len(self.series), requires)

    def setup(self, candidate: Subset) -> Setup:
        """See Ground."""
        kernel, compiled = built(self.builder, self.wanted(candidate), self.progress)
        self.compiled += compiled
        new = (note for note in kernel.origin.inexact_patches if note not in self.notes)
        self.notes.extend(new)
        return Setup(kernel)

    def wanted(self, candidate: Subset) -> Build:
        """What is built for the candidate."""
        chosen = tuple(patch for at, patch in enumerate(self.series) if at in candidate)
        # The source as it is stays the build that it is without fuzz.
        fuzz = self.fuzz if chosen else self.source.fuzz
        return self.source.model_copy(update={"patches": (*self.source.patches, *chosen), "fuzz": fuzz})

    def label(self, candidate: Subset) -> str:
        """See Ground."""
        count = len(candidate)
        if 2 < count < len(self.series) and candidate == frozenset(range(count)):
            return f"the first {count} of {len(self.series)} patches"
        text = subset_label(candidate, len(self.series), "patch", self.names)
        return text.replace("patchs as in B", "patches")

    def described(self, item: int) -> tuple[FoundItem, ...]:
        """The patch, with the subject that it carries."""
        patch = self.series[item]
        return (FoundItem(name=self.names[item], note=_subject(patch)),)

    def _applies(self, candidate: Subset) -> bool:
        try:
            self.builder.configured(self.wanted(candidate), self.progress)
        except PatchNotApplied:
            return False
        except KernelError:
            return candidate != NOTHING
        return True


def series_at(path: Path) -> tuple[str, ...]:
    """The patches of a series, in order: those of a quilt `series` file, or of a directory (series, *.patch).

    Raises BadSeries.
    """
    source = path.expanduser().absolute()
    if source.is_dir() and (source / _SERIES).is_file():
        source /= _SERIES
    if source.is_dir():
        files = sorted(one for one in source.iterdir() if one.suffix in _SUFFIXES)
        if not files:
            raise BadSeries(path=path, problem="there is no *.patch file in it")
        return tuple(map(str, files))
    try:
        lines = [line.partition("#")[0].split() for line in source.read_text(encoding="utf-8").splitlines()]
    except OSError as error:
        raise BadSeries(path=path, problem=error.strerror) from None
    except UnicodeDecodeError:
        raise BadSeries(path=path, problem="it is not text") from None
    if wrong := next((line for line in lines if line[1:] and line[1:] != ["-p1"]), None):
        raise BadSeries(path=path, problem=f"'{' '.join(wrong)}': only patches with -p1 are taken")
    names = [line[0] for line in lines if line]
    if not names:
        raise BadSeries(path=path, problem="it names no patch")
    return tuple(str(source.parent / name) for name in names)


def _subject(patch: Patch) -> str:
    for line in text_of(patch).splitlines():
        if line.startswith("Subject: "):
            return line.removeprefix("Subject: ")
        if line.startswith(("--- ", "diff ")):
            break
    return ""
