"""`ktrial knob`: what can be set in a kernel, what it is here, and how two kernels differ in it."""

from typing import TYPE_CHECKING, Any

import typer

from ktrial.cli.command_line import Argument, BadUsage, Option, command_group, examples
from ktrial.cli.console import messages, output, print_json, print_texts, say
from ktrial.cli.error_handling import tell_error, tell_warnings
from ktrial.cli.options.common import Json, NoWait
from ktrial.cli.options.completion import kernel_names, knob_names, knob_settings, subsystem_names
from ktrial.errors import KtrialError
from ktrial.knobs.errors import BadKnob
from ktrial.model.notation import nearest

if TYPE_CHECKING:
    from ktrial.model.knob import Default, Knob, KnobLocation

_MOST_VALUES = 3
app = command_group("Look at the kernel's settings, and change them.")


@app.declare("list")
@examples("ktrial knob list --subsystem vm")
def list_knobs(
    subsystem: str | None = Option(
        None, help="Only knobs of this subsystem.", autocompletion=subsystem_names
    ),
    json: Json = False,
) -> None:
    """List the knobs that ktrial knows."""
    from ktrial.knobs import catalogue

    tell_warnings(catalogue.installed()[1])
    subsystems = catalogue.subsystems()
    if subsystem and subsystem not in subsystems:
        raise BadKnob(
            f"There are no knobs of {subsystem}{nearest(subsystem, subsystems)}; the subsystems are "
            f"{', '.join(subsystems)}."
        )
    knobs = [knob for knob in catalogue.all_knobs() if subsystem in {None, knob.subsystem}]
    if json:
        print_json([knob.model_dump(mode="json") for knob in knobs])
        return
    rows = ((knob.name, _newest_default(knob), knob.summary) for knob in knobs)
    print_texts(("knob", "default", "what it does"), rows, unbroken=("knob",))


def _newest_default(knob: "Knob") -> str:
    """With its unit; `computed` where the kernel or somebody else decides."""
    value = next((default.value for default in knob.defaults if default.value), "")
    if value:
        return f"{value} {knob.unit}".strip()
    return "computed" if knob.defaults else ""


@app.declare("show")
@examples("ktrial knob show vm.swappiness")
def show(
    name: str = Argument(..., help="A knob's name.", autocompletion=knob_names),
    json: Json = False,
) -> None:
    """Show all that is known about one knob."""
    from ktrial.knobs import catalogue

    knob = catalogue.find(name.partition("@")[0])
    if json:
        print_json(knob.model_dump(mode="json"))
        return
    console = output()
    console.print(f"{knob.name}: {knob.summary}\n", style="bold")
    for fact, value in {**_facts(knob), "here": _here(knob), "compare": _compare(knob)}.items():
        if value:
            console.print(f"{fact}: {value}", soft_wrap=True)


def _here(knob: "Knob") -> str:
    """Its values on this system, and whether it can act; empty where this system does not have it."""
    from ktrial.experiment.preflight import has_swap
    from ktrial.knobs.lookup import System, find
    from ktrial.model.knob import Equipment
    from ktrial.target.local import LocalTarget

    try:
        readings = find(System(LocalTarget()), knob.name)
    except KtrialError:
        return ""
    values = list(dict.fromkeys(str(reading.value) for reading in readings))
    shown = ", ".join(values[:_MOST_VALUES]) + (" …" if len(values) > _MOST_VALUES else "")
    if knob.acts_on is Equipment.SWAP and not has_swap():
        return f"{shown}; this system has no swap: it does nothing here"
    return shown


def _compare(knob: "Knob") -> str:
    """The command that compares its values in a guest; empty where there is more than one of it."""
    from ktrial.model.knob import Activity, Equipment

    if knob.activity is Activity.BALANCE:  # a program's own files in a guest are never reclaimed
        return "ktrial run swappiness, in a guest; with a load of yours: ktrial help for-administrators"
    swap = " --swap 64M --memory 128M" if knob.acts_on is Equipment.SWAP else ""
    if knob.instance or knob.acts_on is Equipment.DISK:
        return ""
    name = f"boot:{knob.name}" if knob.needs_reboot else knob.name
    return f"ktrial compare 6.12 --knob {name}=V1,V2{swap} -- ./my-program"


def _facts(knob: "Knob") -> dict[str, str]:
    from ktrial.knobs.values import described
    from ktrial.model.knob import version_of

    after = knob.successor
    return {
        "subsystem": knob.subsystem,
        "kind": f"{knob.kind}{f', in {knob.unit}' if knob.unit else ''}",
        "allowed": described(knob, version_of("999.0")),
        "default": "; ".join(map(_default, knob.defaults)),
        "where": "\n       ".join(map(_place, knob.places)),
        "changed": "at boot only" if knob.needs_reboot else "while the kernel runs",
        "one for each": knob.instance,
        "with it": ", ".join(knob.coupled),
        "acts on": f"{knob.acts_on}: without any it does nothing" if knob.acts_on else "",
        "safety": knob.safety,
        "successor": f"{after.name}, which is not the same thing: {after.difference}" if after else "",
        "documentation": knob.documentation,
    }


def _default(default: "Default") -> str:
    computed = f"({default.computed})" if default.computed else ""
    config = f"with {default.config}" if default.config else ""
    return " ".join(filter(None, (default.value, computed, _versions(default.since, default.until), config)))


def _place(place: "KnobLocation") -> str:
    needs = " and ".join(filter(None, (place.config, place.needs)))
    parts = (
        place.path or f"boot parameter {place.boot}",
        _versions(place.since, place.until),
        f"with {needs}" if needs else "",
        f"[{place.change}]" if place.change else "",
    )
    return " ".join(filter(None, parts))


def _versions(since: str, until: str) -> str:
    if since and until:
        return f"in {since} to {until}"
    return f"since {since}" if since else f"until {until}" if until else ""


@app.declare("get")
@examples("ktrial knob get vm.swappiness vm.dirty_ratio")
def get(
    names: list[str] = Argument(
        ...,
        help="A knob, a sysctl (vm.swappiness), a path below /proc/sys or /sys, or NAME@INSTANCE.",
        metavar="NAME…",
        autocompletion=knob_names,
        show_default=False,
    ),
    json: Json = False,
) -> None:
    """Read knobs of this system."""
    from ktrial.knobs.lookup import System, find
    from ktrial.target.local import LocalTarget

    system = System(LocalTarget())
    readings: list[Any] = []
    code = 0
    for name in names:
        try:
            readings += find(system, name)
        except KtrialError as error:  # the others are still read
            code = max(code, tell_error(error))
    if json:
        print_json(
            [
                {"knob": reading.name, "path": reading.path, "value": reading.value, "text": reading.text}
                for reading in readings
            ]
        )
    else:
        for reading in readings:
            print(f"{reading.name} = {reading.value}")
    if code:
        raise typer.Exit(code)


@app.declare("set")
@examples("ktrial knob set vm.swappiness=10")
def set_knobs(
    settings: list[str] = Argument(
        ..., help="NAME=VALUE; may be repeated.", metavar="NAME=VALUE…", autocompletion=knob_settings
    ),
    no_wait: NoWait = False,
    json: Json = False,
) -> None:
    """Set knobs of this system; ktrial host restore puts them back."""
    from ktrial.knobs.apply import changing
    from ktrial.knobs.values import chosen
    from ktrial.target.local import LocalTarget

    pairs = []
    for setting in settings:
        name, equals, value = setting.partition("=")
        if not equals:
            hint = f"name and value are one word: ktrial knob set {name}=VALUE"
            raise BadUsage(f"{setting} has no value.", hint=hint)
        pairs.append((name, value))
    with changing(LocalTarget(), "knob set", lasting=True, wait=not no_wait, say=say) as changes:
        applied = changes.apply(*pairs, exactly=False)
    results = [
        {
            "knob": change.name,
            "path": change.path,
            "before": " ".join(chosen(change.before).split()),
            "asked": change.asked,
            "now": " ".join(chosen(change.now).split()),
            "rounded": change.rounded,
        }
        for change in applied
    ]
    if json:
        print_json(results)
        return
    for result in results:
        rounded = f" (asked for {result['asked']}; the kernel rounds it)" if result["rounded"] else ""
        print(f"{result['knob']} = {result['now']}, was {result['before']}{rounded}")
    say("to put back what was there: ktrial host restore")


@app.declare("diff")
@examples("ktrial knob diff debian:6.1 debian:6.12")
def diff(
    before: str = Argument(..., metavar="KERNEL", help="debian:6.1", autocompletion=kernel_names),
    after: str = Argument(..., metavar="KERNEL", help="debian:6.12", autocompletion=kernel_names),
    json: Json = False,
) -> None:
    """Show how the defaults of two kernels differ.

    Each kernel is booted in a guest, and its settings are read.
    """
    from ktrial.experiment import default_settings

    settings = []
    with messages().status("") as status:
        for name in (before, after):
            status.update(f"reading the settings of {name}")
            settings.append(default_settings.knob_values(name))
    differing = default_settings.knob_differences(*settings)
    if json:
        print_json(
            [{"knob": knob.knob.name, "before": knob.before, "after": knob.after} for knob in differing]
        )
    elif not differing:
        say(f"no knob that ktrial knows differs between {before} and {after}")
    else:
        rows = [
            (
                knob.knob.name,
                "absent" if knob.before is None else knob.before,
                "absent" if knob.after is None else knob.after,
            )
            for knob in differing
        ]
        print_texts(("knob", before, after), rows, unbroken=("knob",))
