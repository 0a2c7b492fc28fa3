"""Why an option did not take: what it depends on, with values; its choice; who selects it."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ktrial.kernels.build.errors import OptionNotTaken
from ktrial.kernels.kconfig.menus import Definition, read
from ktrial.model.suggestions import nearest

if TYPE_CHECKING:
    from ktrial.kernels.build.make import Make

_AT_MOST = 6
_VALUES = {"bool": "y and n", "tristate": "y, m and n"}


def unmet_dependencies(
    make: "Make", name: str, wanted: str, final: Mapping[str, str], known: Mapping[str, Definition]
) -> OptionNotTaken:
    """The error for one option. `final`: the configuration; `known`: what the source defines."""
    value = final.get(name, "n")
    place = known.get(name)
    if place is None:
        near = nearest(name, known)
        problem = f"Linux {make.tree.version} has no such option{near}"
        advice = "look for it: make menuconfig, then /"
    else:
        facts, _ = read(make.tree, make.variables, str(make.build / ".config"), name)
        problem = f"it became {value}"
        advice = _explained(wanted, facts) if facts else _defined(place)
        if wanted == "m" and final.get("CONFIG_MODULES", "n") == "n":
            advice += "; a module needs MODULES=y"
    called = make.called or make.tree.directory
    words = {"option": name, "wanted": wanted, "problem": problem, "advice": advice}
    return OptionNotTaken(name=called, directory=called, **words)


def _defined(place: Definition) -> str:
    """Where kconfiglib cannot read the source, what the option's own lines say."""
    wants = f"on {' && '.join(place.depends)}, and on" if place.depends else "on"
    around = "what the menus and conditions around it ask for"
    return f"it is defined in {place.file}:{place.line}; it depends {wants} {around}"


def _explained(wanted: str, facts: Mapping[str, Any]) -> str:
    reasons = [f"it is defined in {facts['place']}"]
    if facts["depends"] not in {"", "y"}:
        reasons.append(f"it depends on {facts['depends']}")
    if wanted != "n" and facts["unmet"]:
        reasons.append(f"not met: {_some(facts['unmet'])}")
    if wanted in {"n", "m"} and facts["selected_now"]:
        reasons.append(f"it is selected by {_some(facts['selected_now'])}: change that first")
    elif not facts["prompt"]:
        by = f"; it is selected by {_some(facts['selected_by'])}" if facts["selected_by"] else ""
        reasons.append(f"it has no prompt, so that only other options can set it{by}")
    if facts["choice"]:
        chosen = facts["chosen"] or "none"
        reasons.append(f"it is one of a choice ({', '.join(facts['choice'])}), of which {chosen} is taken")
    if facts["ranges"]:
        reasons.append(f"its range is {' or '.join(facts['ranges'])}")
    if wanted == "m" and facts["kind"] != "tristate":
        reasons.append(f"it is a {facts['kind']}: it cannot be a module")
    if facts["kind"] in _VALUES and wanted not in {"y", "n", "m"}:
        reasons.append(f"it is a {facts['kind']}: its values are {_VALUES[facts['kind']]}")
    return "; ".join(reasons)


def _some(texts: list[str]) -> str:
    more = f" and {len(texts) - _AT_MOST} more" if len(texts) > _AT_MOST else ""
    return ", ".join(texts[:_AT_MOST]) + more
