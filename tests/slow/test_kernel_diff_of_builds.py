"""Two kernels that ktrial has built, with SLUB and with SLAB: kernel diff shows the choice alone."""

import pytest
from typer.testing import CliRunner

from ktrial.analysis.kernel_diff import difference_of
from ktrial.cli.commands.kernel import app
from ktrial.kernels.build.builds import build
from ktrial.model.kernel import Build, Kernel, OptionCause, Respect

pytestmark = [pytest.mark.slow, pytest.mark.guest, pytest.mark.timeout(2 * 3600)]
SOURCE = "debian:linux-source-6.1"


@pytest.fixture(scope="module")
def allocators() -> tuple[Kernel, Kernel]:
    """From the user's own cache: compiled on first use only."""
    slub, slab = (build(Build(source=SOURCE, options={f"CONFIG_{name}": "y"})) for name in ("SLUB", "SLAB"))
    return slub, slab


def test_only_the_allocators_options_differ(allocators: tuple[Kernel, Kernel]) -> None:
    difference = difference_of(*allocators)
    assert difference.respects == (Respect.OPTIONS,), difference.respects
    assert [one.option for one in difference.decided] == ["CONFIG_SLAB"]
    assert {one.cause for one in difference.options} == {OptionCause.OWN, OptionCause.OPTION}
    assert {"CONFIG_SLUB", "CONFIG_SLUB_DEBUG", "CONFIG_SLUB_CPU_PARTIAL"} <= {
        one.option for one in difference.following("CONFIG_SLAB")
    }
    assert difference.modules == ()
    assert difference.patches == ()


def test_the_command_says_so_in_one_line(allocators: tuple[Kernel, Kernel]) -> None:
    names = [kernel.name for kernel in allocators]
    printed = CliRunner().invoke(app, ["diff", *names]).stdout
    assert printed.startswith("They differ in 1 option.\n")
    assert "SLUB → SLAB" in printed


def test_the_same_build_twice_is_no_difference(allocators: tuple[Kernel, Kernel]) -> None:
    assert difference_of(allocators[0], allocators[0]).nothing
