"""What differs between two kernels as one HTML page, which needs no network and has no script."""

from ktrial.model.kernel import KernelDifference
from ktrial.report.html.templating import environment, style_of
from ktrial.report.text.kernel_diff import shown


def page(difference: KernelDifference) -> str:
    """The page as text."""
    made = environment()
    template = made.get_template("kernel_difference_page.html.j2")
    return template.render(change=shown(difference), style=style_of())
