"""Folded stacks: one line a stack, `a;b;c instructions`, the outermost function first."""

from ktrial.model.profile import Profile
from ktrial.report.call_tree import folded


class Folded:
    """What stackcollapse.pl of github.com/brendangregg/FlameGraph writes."""

    name = "folded"
    summary = "call stacks, one a line: flamegraph.pl, inferno, speedscope"

    def text(self, profile: Profile) -> str:
        """Instructions of the whole region."""
        return "".join(f"{line}\n" for line in folded(profile))


EXPORT = Folded()
