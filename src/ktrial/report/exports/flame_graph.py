"""The flame graph: an SVG file for a browser."""

from ktrial.model.profile import Profile
from ktrial.report.flame_graph import of_profile


class FlameGraph:
    """A picture that can be zoomed and searched."""

    name = "flame-graph"
    summary = "SVG that can be zoomed and searched: a browser"

    def text(self, profile: Profile) -> str:
        """Instructions per operation."""
        return of_profile(profile)


EXPORT = FlameGraph()
