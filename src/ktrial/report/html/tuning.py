"""A search as one HTML page: its path, the confirmation, what was kept, what was taken back."""

from ktrial.model.study import Study
from ktrial.model.tuning import Purpose, Tuned, TunedInteraction
from ktrial.optimize.deployment_files import Answer
from ktrial.optimize.search_space import search_of
from ktrial.report.charts.tuning import NARROW, picture
from ktrial.report.html.scripts import page_script
from ktrial.report.html.templating import environment, style_of
from ktrial.report.tables import tuning as tables
from ktrial.report.text.tuning import configuration_text, revalidating, two_estimates, wanted

PURPOSES = {
    Purpose.CALIBRATE: "the baseline, for the noise",
    Purpose.EXPLORE: "exploring",
    Purpose.CONTEND: "contenders",
    Purpose.ABLATE: "with a knob taken back",
    Purpose.CONFIRM: "confirming, on fresh runs",
}


def page(
    study: Study,
    tuned: Tuned,
    answer: Answer | None = None,
    *,
    number: int | None = None,
    whole: bool = False,
) -> str:
    """The page as text. `answer`: with the settings as they were read back; `number`: in its store; `whole`:
    all sections open."""
    made = environment()
    search, _ = search_of(study)
    return made.get_template("tuning.html.j2").render(
        study=study,
        tuned=tuned,
        left_out=search.left_out,
        estimates=two_estimates(tuned),
        undecided=configuration_text(tuned.undecided) if tuned.undecided else "",
        revalidating=revalidating(study, number),
        charts=[("wide", picture(tuned)), ("narrow", picture(tuned, NARROW))],
        purposes=PURPOSES,
        used=list(dict.fromkeys(one.purpose for one in tuned.observations)),
        corners=[(one, corners(one)) for one in tuned.interactions],
        tables={
            "confirmation": tables.confirmation(tuned.comparisons),
            "finalists": tables.finalists(tuned),
            "settings": tables.settings(tuned, answer.in_force if answer else {}),
            "taken_back": tables.taken_back(tuned.dropped),
            "front": tables.front(tuned),
            "importance": tables.importance(tuned.importance),
            "space": tables.space(tuned.space.dimensions),
            "runs": tables.runs(tuned),
        },
        wanted=wanted,
        failed=[one for one in tuned.observations if one.failure],
        style=style_of("tuning.css"),
        script=page_script(),
        opened=whole,
    )


def corners(one: TunedInteraction) -> tuple[tuple[float, float], tuple[float, float]]:
    """Heights, 0 to 100 from the top, of two lines: the first knob's change, without and with the second."""
    low, high = min(one.corners), max(one.corners)
    wide = high - low or 1.0
    neither, first, second, both = (round(90 - 80 * (each - low) / wide, 1) for each in one.corners)
    return (neither, first), (second, both)
