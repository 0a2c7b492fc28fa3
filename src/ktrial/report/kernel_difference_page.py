"""What differs between two kernels as one HTML page, which needs no network and has no script."""

from markupsafe import Markup

from ktrial.model.kernel_difference import KernelDifference
from ktrial.report import figures, words
from ktrial.report.kernel_difference import shown
from ktrial.report.printable import shortened
from ktrial.report.templating import environment, text_of


def page(found: KernelDifference) -> str:
    """The page as text."""
    made = environment()
    made.globals.update(figures=figures, words=words, shortened=shortened)
    template = made.get_template("kernel_difference_page.html.j2")
    return template.render(change=shown(found), style=Markup(text_of("page.css")))
