"""Kernels of a git tree that nobody compiles: what the subjects of their commits say is what they cost."""

import re
from dataclasses import dataclass, field, replace
from pathlib import Path

from tests.support.fake_builds import FakeBuilder, git
from tests.support.scripted import a_kernel

from ktrial.experiment.resources import Builder
from ktrial.kernels import Progress
from ktrial.kernels.errors import PatchNotApplied
from ktrial.model.base import digest
from ktrial.model.kernel import Build, Kernel, Origin
from ktrial.model.machine import Boot
from ktrial.target import Run, StepResult

COST = re.compile(r"costs[- ](\d+)")


@dataclass
class CostBuilder:
    """`pipe: costs 40` makes 40 instructions more; what is `stuck` does not come off."""

    tree: Path
    built: list[str] = field(default_factory=list)

    @property
    def builder(self) -> Builder:
        return replace(FakeBuilder().builder, build=self.build, applies=self.applies)

    def build(self, request: Build, progress: Progress) -> Kernel:
        progress("building: 1 file")
        revision = request.source.rpartition("@")[2]
        subjects = git(self.tree, "log", "--format=%s", revision)
        cost = 1000 + sum(map(int, COST.findall(subjects)))
        cost -= sum(int(number) for patch in request.patches for number in COST.findall(patch.path))
        self.built.append(revision[:12])
        origin = Origin(provider="build", source=request.source, build=request)
        content = digest([cost, revision, [patch.digest for patch in request.patches]])
        return a_kernel(request.name, release=f"6.1-{cost}", digest=content, origin=origin)

    def applies(self, request: Build, _progress: Progress) -> None:
        if any("stuck" in patch.path for patch in request.patches):
            facts = {"path": "undo.patch", "problem": "hunk 1 of mm/a.c fails at line 3", "advice": ""}
            raise PatchNotApplied(directory="linux", **facts)


def answer(boot: Boot, _run: Run) -> StepResult:
    return StepResult(step=0, do="run", exit=0, stdout=boot.kernel.release.rpartition("-")[2])
