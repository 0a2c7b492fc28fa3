"""What the catalogue says about a knob, in words."""

from ktrial.knobs.values import described
from ktrial.model.knob import Default, Knob, KnobLocation, version_of

_NEWEST = version_of("999.0")


def default_text(knob: Knob) -> str:
    """The newest default with its unit; `computed` where the kernel or somebody else decides."""
    value = next((default.value for default in knob.defaults if default.value), "")
    if value:
        return f"{value} {knob.unit}".strip()
    return "computed" if knob.defaults else ""


def places_text(knob: Knob) -> dict[str, str]:
    """All facts, by what they are."""
    after = knob.successor
    return {
        "subsystem": knob.subsystem,
        "kind": f"{knob.kind}{f', in {knob.unit}' if knob.unit else ''}",
        "allowed": described(knob, _NEWEST),
        "default": "; ".join(_default(one) for one in knob.defaults),
        "where": "\n       ".join(_place(place) for place in knob.places),
        "changed": "at boot only" if knob.needs_reboot else "while the kernel runs",
        "one for each": knob.instance,
        "with it": ", ".join(knob.coupled),
        "acts on": f"{knob.acts_on}: without any it does nothing" if knob.acts_on else "",
        "safety": knob.safety,
        "successor": f"{after.name}, which is not the same thing: {after.difference}" if after else "",
        "documentation": knob.documentation,
    }


def _default(default: Default) -> str:
    value = " ".join(filter(None, (default.value, f"({default.computed})" if default.computed else "")))
    return " ".join(filter(None, (value, _versions(default.since, default.until), _with(default.config))))


def _place(place: KnobLocation) -> str:
    what = place.path or f"boot parameter {place.boot}"
    needs = _with(" and ".join(filter(None, (place.config, place.needs))))
    change = f"[{place.change}]" if place.change else ""
    return " ".join(filter(None, (what, _versions(place.since, place.until), needs, change)))


def _versions(since: str, until: str) -> str:
    if since and until:
        return f"in {since} to {until}"
    return f"since {since}" if since else f"until {until}" if until else ""


def _with(what: str) -> str:
    return f"with {what}" if what else ""
