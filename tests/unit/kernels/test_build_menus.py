"""What kconfiglib says about options, in sources as old as 5.10 and as new as 7.3 write their Kconfig."""

from pathlib import Path

import pytest
from tests.support.fake_builds import a_buildable_source, has_what_builds_need

from ktrial.kernels.build.builds import configured, menu_of
from ktrial.kernels.build.requests import requested
from ktrial.kernels.errors import OptionNotTaken
from ktrial.model.kernel import Build

KCONFIG = """\
config MODULES
\tbool "Modules"
\tmodules

menu "Memory"
choice
\tprompt "Allocator"
config SLAB
\tbool "SLAB"
config SLUB
\tbool "SLUB"
endchoice

if SMP
config NEEDS_BROKEN_OR
\tbool "Debug it"
\tdepends on NUMA || NODES > 4
\tselect CRC
endif
endmenu

config CRC
\ttristate

config NUMA
\tbool "Nodes"
\ttransitional

config NODES
\tint "How many"
\trange 1 64
\tdefault 2

config GADGET
\tbool "Gadget"
\tdepends on SMP if !NUMA # under a condition
"""


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KTRIAL_CACHE", str(tmp_path / "cache"))
    has_what_builds_need(monkeypatch, tmp_path / "host")


@pytest.fixture
def source(tmp_path: Path) -> Path:
    result = a_buildable_source(tmp_path / "linux")
    with (result / "init/Kconfig").open("a") as file:
        file.write(KCONFIG)
    return result


def asked(source: Path, *options: str) -> Build:
    return requested(str(source), options=options, directory=source)


def test_menus_prompts_dependencies_selectors_and_choices_are_told(source: Path) -> None:
    menu = menu_of(asked(source))
    assert menu.problem == ""
    debug = menu.options["CONFIG_NEEDS_BROKEN_OR"]
    assert (debug.kind, debug.prompt, debug.menu) == ("bool", "Debug it", ("Memory",))
    assert debug.depends == "(NUMA || NODES > 4) && SMP"
    assert menu.options["CONFIG_CRC"].selected_by == ("NEEDS_BROKEN_OR",)
    assert menu.options["CONFIG_SLAB"].choice == ("SLAB", "SLUB")
    assert menu.options["CONFIG_GADGET"].depends == "SMP || !(!NUMA)"
    assert menu_of(asked(source)) == menu, "it is kept"


def test_an_option_that_did_not_take_says_what_is_not_met(source: Path) -> None:
    with pytest.raises(OptionNotTaken) as caught:
        configured(asked(source, "NEEDS_BROKEN_OR=y"))
    assert "it depends on (NUMA [=n] || NODES [=2] > 4) && SMP [=y]" in caught.value.advice
    assert "not met: NUMA [=n] || NODES [=2] > 4" in caught.value.advice


def test_a_source_that_kconfiglib_cannot_read_says_less(source: Path) -> None:
    with (source / "init/Kconfig").open("a") as file:
        file.write("config NEWER\n\tunheard of\n")
    menu = menu_of(asked(source))
    assert menu.options == {}
    assert "couldn't parse" in menu.problem
    with pytest.raises(OptionNotTaken) as caught:
        configured(asked(source, "NEEDS_BROKEN=y"))
    assert "it depends on BROKEN && SMP, and on what the menus" in caught.value.advice


def test_slots_bound_the_builds_of_all_processes(source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from ktrial.kernels.build import make

    pages = {"SC_PAGE_SIZE": 4096, "SC_PHYS_PAGES": 16 << 18}
    monkeypatch.setattr("os.sysconf", pages.__getitem__)
    for cores, slots in ((64, 4), (2, 1)):
        monkeypatch.setattr("os.sched_getaffinity", lambda _process, cores=cores: set(range(cores)))
        assert make.slots() == slots
    messages: list[str] = []

    class Told(Exception):
        pass

    def progress(step: str, finished: int = 0, total: int = 0) -> None:
        messages.append(step)
        raise Told

    with make.slot(progress) as jobs:
        assert jobs == 2
        with pytest.raises(Told), make.slot(progress):
            pass
    assert messages == ["waiting for another build to end"]
