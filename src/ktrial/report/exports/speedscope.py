"""speedscope's own format (speedscope.app): JSON, a list of functions and of stacks with their weights.

Source: src/lib/file-format-spec.ts of github.com/jlfwong/speedscope, version 0.6.0 and later.
"""

import json
from importlib.metadata import version

from ktrial.model.profile import Profile
from ktrial.report.call_tree import stacks

_SCHEMA = "https://www.speedscope.app/file-format-schema.json"


class Speedscope:
    """A sampled profile whose samples are stacks, each with all its instructions."""

    name = "speedscope"
    summary = "JSON: speedscope.app"

    def text(self, profile: Profile) -> str:
        """Weights are instructions of the whole region; the unit is `none`, since they are no time."""
        counted = sorted(stacks(profile).items())
        names = sorted({name for stack, _ in counted for name in stack})
        places = {name: place for place, name in enumerate(names)}
        weights = [int(value * profile.operations) for _, value in counted]
        title = f"{profile.workload} on {profile.label}"
        sampled = {
            "type": "sampled",
            "name": f"{title}: instructions in {profile.operations} operations",
            "unit": "none",
            "startValue": 0,
            "endValue": sum(weights),
            "samples": [[places[name] for name in stack] for stack, _ in counted],
            "weights": weights,
        }
        return json.dumps(
            {
                "$schema": _SCHEMA,
                "name": title,
                "exporter": f"ktrial@{version('ktrial')}",
                "activeProfileIndex": 0,
                "shared": {"frames": [{"name": name} for name in names]},
                "profiles": [sampled],
            }
        )


EXPORT = Speedscope()
