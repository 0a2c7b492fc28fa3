"""`ktrial knob`: what can be set in a kernel, what it is here, and how two kernels differ in it."""

from collections.abc import Iterable
from typing import Annotated, Any

import typer

from ktrial.cli.command_line import KtrialCommand, command_group, examples
from ktrial.cli.console import output, print_json, say
from ktrial.cli.options.common import Json
from ktrial.cli.options.completion import kernel_names, knob_names, knob_settings, subsystem_names
from ktrial.errors import KtrialError


class ValueMissing(KtrialError):
    """`setting`: no value is given for it."""

    text = "{setting}: no value is given for it."
    hint = "name and value are one word: ktrial knob set {name}=VALUE"
    exit_code = 2


app = command_group("Look at the kernel's settings, and change them.")

_NAME_HELP = "A knob, a sysctl (vm.swappiness), a path below /proc/sys or /sys, or NAME@INSTANCE."
Names = Annotated[
    list[str], typer.Argument(help=_NAME_HELP, metavar="NAME…", autocompletion=knob_names, show_default=False)
]


@app.command("list", cls=KtrialCommand)
@examples("ktrial knob list --subsystem vm")
def list_knobs(
    subsystem: Annotated[
        str | None, typer.Option(help="Only those of this subsystem.", autocompletion=subsystem_names)
    ] = None,
    json: Json = False,
) -> None:
    """List the knobs that ktrial knows."""
    from ktrial.cli.render.knobs import default_text
    from ktrial.cli.render.table import rendered
    from ktrial.cli.studies import tell_broken
    from ktrial.format.table import Field, table, text_field
    from ktrial.knobs import catalogue
    from ktrial.knobs.errors import BadKnob
    from ktrial.model.knob import Knob
    from ktrial.model.notation import nearest

    tell_broken(catalogue.installed()[1])
    known = catalogue.subsystems()
    if subsystem and subsystem not in known:
        raise BadKnob(
            f"There are no knobs of {subsystem}{nearest(subsystem, known)}; there are those of "
            f"{', '.join(known)}."
        )
    knobs = [knob for knob in catalogue.all_knobs() if subsystem in {None, knob.subsystem}]
    if json:
        print_json([knob.model_dump(mode="json") for knob in knobs])
        return
    fields: tuple[Field[Knob], ...] = (
        text_field("knob", lambda knob: knob.name, wraps=False),
        text_field("default", default_text),
        text_field("what it does", lambda knob: knob.summary),
    )
    output().print(rendered(table(fields, knobs)))


@app.command("show", cls=KtrialCommand)
@examples("ktrial knob show vm.swappiness")
def show(
    name: Annotated[str, typer.Argument(help="A knob's name.", autocompletion=knob_names)],
    json: Json = False,
) -> None:
    """Show all that is known about one knob."""
    from ktrial.cli.render.knobs import places_text
    from ktrial.knobs import catalogue

    knob = catalogue.find(name.partition("@")[0])
    if json:
        print_json(knob.model_dump(mode="json"))
        return
    console = output()
    console.print(f"{knob.name}: {knob.summary}\n", style="bold")
    for what, value in places_text(knob).items():
        if value:
            console.print(f"{what}: {value}", soft_wrap=True)


@app.command("get", cls=KtrialCommand)
@examples("ktrial knob get vm.swappiness vm.dirty_ratio")
def get(names: Names, json: Json = False) -> None:
    """Read knobs of this system."""
    from ktrial.cli.error_handling import tell_error
    from ktrial.knobs.lookup import System, find
    from ktrial.target.local import LocalTarget

    system = System(LocalTarget())
    readings: list[Any] = []
    code = 0
    for name in names:
        try:
            readings += find(system, name)
        except KtrialError as error:  # the others are still wanted
            code = max(code, tell_error(error))
    _print_values(readings, json)
    if code:
        raise typer.Exit(code)


def _print_values(readings: list[Any], json: bool) -> None:
    if json:
        print_json(
            [{"knob": one.name, "path": one.path, "value": one.value, "text": one.text} for one in readings]
        )
        return
    for one in readings:
        print(f"{one.name} = {one.value}")


@app.command("set", cls=KtrialCommand)
@examples("ktrial knob set vm.swappiness=10")
def set_knobs(
    settings: Annotated[
        list[str],
        typer.Argument(
            help="NAME=VALUE, several if need be.", metavar="NAME=VALUE…", autocompletion=knob_settings
        ),
    ],
    no_wait: Annotated[
        bool, typer.Option("--no-wait", help="Do not wait for another ktrial that changes knobs.")
    ] = False,
    json: Json = False,
) -> None:
    """Set knobs of this system; `ktrial restore` puts back what was there."""
    from ktrial.knobs.apply import changing
    from ktrial.target.local import LocalTarget

    pairs = [_pair(setting) for setting in settings]
    with changing(LocalTarget(), "knob set", lasting=True, wait=not no_wait, say=say) as changes:
        applied = changes.apply(*pairs, exactly=False)
    if json:
        print_json([_applied(one) for one in applied])
        return
    for one in applied:
        facts = _applied(one)
        rounded = f" ({one.asked} was asked for, the kernel rounds)" if one.rounded else ""
        print(f"{one.name} = {facts['now']}, was {facts['before']}{rounded}")
    say("to put back what was there: ktrial restore")


@app.command("diff", cls=KtrialCommand)
@examples("ktrial knob diff debian:6.1 debian:6.12")
def diff(
    before: Annotated[str, typer.Argument(metavar="KERNEL", help="debian:6.1", autocompletion=kernel_names)],
    after: Annotated[str, typer.Argument(metavar="KERNEL", help="debian:6.12", autocompletion=kernel_names)],
    json: Json = False,
) -> None:
    """Show how the defaults of two kernels differ.

    Each is booted in a guest and asked.
    """
    from ktrial.cli.console import messages
    from ktrial.experiment import default_settings

    with messages().status("") as status:
        settings = []
        for name in (before, after):
            status.update(f"reading the settings of {name}")
            settings.append(default_settings.knob_values(name))
    differing = default_settings.knob_differences(*settings)
    if json:
        print_json([{"knob": one.knob.name, "before": one.before, "after": one.after} for one in differing])
        return
    _print_differences(before, after, differing)


def _print_differences(before: str, after: str, differing: Iterable[Any]) -> None:
    from ktrial.cli.render.table import rendered
    from ktrial.format.table import Field, table, text_field

    fields: tuple[Field[Any], ...] = (
        text_field("knob", lambda one: one.knob.name, wraps=False),
        text_field(before, lambda one: "absent" if one.before is None else one.before),
        text_field(after, lambda one: "absent" if one.after is None else one.after),
    )
    differences = table(fields, differing)
    if not differences.rows:
        say(f"no knob that ktrial knows differs between {before} and {after}")
        return
    output().print(rendered(differences))


def _pair(setting: str) -> tuple[str, str]:
    name, equals, value = setting.partition("=")
    if not equals:
        raise ValueMissing(setting=setting, name=name)
    return name, value


def _applied(one: Any) -> dict[str, Any]:
    from ktrial.knobs.values import chosen

    before, now = (" ".join(chosen(text).split()) for text in (one.before, one.now))
    facts = {"knob": one.name, "path": one.path, "before": before, "asked": one.asked, "now": now}
    return {**facts, "rounded": one.rounded}
