"""What differs between two kernels: who they are, patches, compiler, flags, modules; what is not known."""

import hashlib
import io
import json
from pathlib import Path

import pytest
from rich.console import Console
from tests.support import kernel_images as make
from tests.support.kconfig_trees import SLAB, SLUB
from tests.support.making import a_study
from typer.testing import CliRunner

from ktrial.analysis.kernel_diff import difference_of
from ktrial.cli.commands.kernel import app
from ktrial.cli.render.kernels import print_kernel_difference
from ktrial.errors import KtrialError
from ktrial.kernels import kernel_registry
from ktrial.kernels.errors import NotASource, SourceUnusable
from ktrial.model.kernel import Build, Kernel, KernelDifference, OptionCause, Origin, Patch, Respect
from ktrial.report import kernel_difference_html
from ktrial.report.kernel_diff import shown
from ktrial.store.store import open_store

PATCH = """\
--- a/mm/slub.c
+++ b/mm/slub.c
@@ -1 +1 @@
-old
+new
--- a/mm/Kconfig
+++ b/mm/Kconfig
@@ -1 +1 @@
-old
+new
"""


def a_kernel(directory: Path, name: str, config: str | None = SLUB, **more: object) -> Kernel:
    home = directory / name.replace("/", "_")
    home.mkdir(parents=True, exist_ok=True)
    place = None
    if config is not None:
        place = home / "config"
        place.write_text(config)
    facts = {
        "name": name,
        "release": "6.1.7",
        "origin": Origin(provider="path", source=name),
        "digest": hashlib.sha256(f"{name}{config}".encode()).hexdigest(),
        "config_digest": hashlib.sha256((config or "").encode()).hexdigest() if config else "",
        "image": home / "vmlinuz",
        "config": place,
    }
    return Kernel.model_validate(facts | more)


def built(
    directory: Path, name: str, text: str = SLUB, /, *, release: str = "6.1.7", **build: object
) -> Kernel:
    """As ktrial builds it, of a source that is not there any more."""
    expected = Build.model_validate({"source": str(directory / "gone")} | build)
    origin = Origin(provider="build", source=expected.source, build=expected)
    return a_kernel(directory, name, text, origin=origin, release=release)


def a_patch(directory: Path, name: str, text: str = PATCH) -> Patch:
    (directory / name).write_text(text)
    return Patch(path=str(directory / name), digest=hashlib.sha256(text.encode()).hexdigest())


def text_of(difference: KernelDifference, *, everything: bool = False) -> str:
    console = Console(width=80, file=io.StringIO())
    with console.capture() as capture:
        print_kernel_difference(difference, console, everything=everything)
    text = capture.get()
    assert max(map(len, text.splitlines())) <= 80
    return text


def test_the_same_kernel_twice_differs_in_nothing(tmp_path: Path) -> None:
    kernel = a_kernel(tmp_path, "path:a")
    difference = difference_of(kernel, kernel)
    assert difference.nothing
    assert difference.same_content
    assert text_of(difference).startswith("No difference: ")
    assert "No difference" in kernel_difference_html(difference)


def test_each_respect_is_found_and_named(tmp_path: Path) -> None:
    config = SLAB.replace("gcc 12", "gcc 13") + 'CONFIG_CMDLINE_BOOL=y\nCONFIG_CMDLINE="quiet"\n'
    kernel = built(tmp_path, "build:one")
    patches = [a_patch(tmp_path, "muqss.patch")]
    reordered = built(
        tmp_path, "build:other", config, release="6.2.0", patches=patches, make={"KCFLAGS": "-O3"}
    )
    difference = difference_of(kernel, reordered)
    assert difference.respects == (
        Respect.VERSION,
        Respect.PATCHES,
        Respect.OPTIONS,
        Respect.COMPILER,
        Respect.FLAGS,
        Respect.COMMAND_LINE,
    )
    text = text_of(difference)
    sentence = "They differ in version, 1 patch, 3 options, compiler, compiler flags and command line."
    assert sentence in " ".join(text.split())
    assert "muqss.patch" in text
    assert "mm/Kconfig, mm/slub.c" in text
    assert "KCFLAGS=-O3" in text
    page = kernel_difference_html(difference)
    assert "<script" not in page
    for part in ("muqss.patch", "mm/slub.c", "SLAB allocator options", "KCFLAGS=-O3", "gcc 13"):
        assert part in page


def test_a_patch_that_is_gone_is_still_named(tmp_path: Path) -> None:
    patch = a_patch(tmp_path, "p.patch")
    kernel, reordered = built(tmp_path, "build:one"), built(tmp_path, "build:other", patches=[patch])
    Path(patch.path).unlink()
    (difference,) = difference_of(kernel, reordered).patches
    assert (difference.patch, difference.in_first, difference.files) == (patch, False, ())


def test_the_order_of_patches_is_a_difference(tmp_path: Path) -> None:
    first, second = a_patch(tmp_path, "1.patch"), a_patch(tmp_path, "2.patch", PATCH.replace("new", "newer"))
    kernel = built(tmp_path, "build:one", patches=[first, second])
    reordered = built(tmp_path, "build:other", patches=[second, first])
    difference = difference_of(kernel, reordered)
    assert difference.respects == (Respect.PATCHES,)
    assert difference.reordered_patches
    assert "the order of patches" in text_of(difference)


def test_an_unknown_configuration_is_said_and_the_rest_is_shown(tmp_path: Path) -> None:
    kernel, reordered = a_kernel(tmp_path, "path:a", None), a_kernel(tmp_path, "path:b", release="6.2.0")
    difference = difference_of(kernel, reordered)
    assert difference.respects == (Respect.VERSION,)
    assert "options: the configuration of path:a is not known" in difference.unknown
    assert "the configuration of path:a is not known" in text_of(difference)


def test_a_source_that_is_gone_folds_nothing_and_says_why(tmp_path: Path) -> None:
    difference = difference_of(built(tmp_path, "build:one"), built(tmp_path, "build:other", SLAB))
    assert not difference.folded
    assert len(difference.decided) == 5
    assert any("which options follow from others" in text for text in difference.unknown)


def test_modules_that_one_lacks_or_has_built_in(tmp_path: Path) -> None:
    trees = []
    for side, names in (("a", ("one", "two")), ("b", ("two", "three"))):
        (tmp_path / side).mkdir()
        trees.append(make.module_tree(tmp_path / side, names=names))
        (trees[-1] / "modules.dep").write_text("".join(f"kernel/{name}.ko:\n" for name in names))
    (trees[1] / "modules.builtin").write_text("kernel/one.ko\n")
    kernel, reordered = (
        a_kernel(tmp_path, f"path:{number}", modules=tree) for number, tree in enumerate(trees)
    )
    difference = difference_of(kernel, reordered)
    changes = {module.name: (module.before, module.after) for module in difference.modules}
    assert changes["three"] == ("", "module")
    assert changes["one"] == ("module", "built in")
    assert "two" not in changes
    assert "module in the first, built in in the second" in text_of(difference)


def test_modules_that_are_not_known_are_no_difference(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    kernel = a_kernel(tmp_path, "path:a", modules=make.module_tree(tmp_path / "a"))
    difference = difference_of(kernel, a_kernel(tmp_path, "path:b"))
    assert difference.modules == ()
    assert "modules: those of path:b are not known" in difference.unknown


def test_modules_without_depmods_lists_are_not_known(tmp_path: Path) -> None:
    kernels = []
    for side in ("a", "b"):
        (tmp_path / side).mkdir()
        tree = make.module_tree(tmp_path / side)
        if side == "a":
            (tree / "modules.dep").write_text("kernel/one.ko:\n")
        else:
            (tree / "modules.builtin").unlink()
        kernels.append(a_kernel(tmp_path, f"path:{side}", modules=tree))
    difference = difference_of(*kernels)
    assert difference.modules == ()
    assert "modules: those of path:b are not known" in difference.unknown


def test_long_lists_of_drivers_are_cut_and_counted_and_the_command_for_all_is_named(tmp_path: Path) -> None:
    many = "".join(f"CONFIG_DRIVER_{number:03}=m\n" for number in range(200))
    difference = difference_of(
        a_kernel(tmp_path, "path:a", "CONFIG_A=y\n"), a_kernel(tmp_path, "path:b", many)
    )
    text = text_of(difference)
    assert "and 192 more (--all)" in text
    assert "192 names are left out above" in text
    assert text.endswith("  ktrial kernel diff path:a path:b --all\n")
    everything = text_of(difference, everything=True)
    assert "DRIVER_199" in everything
    assert "left out" not in everything


def test_options_of_the_kernel_itself_are_never_cut(tmp_path: Path) -> None:
    drivers = "".join(f"CONFIG_DRIVER_{number:03}=m\n" for number in range(200))
    options = "".join(f"CONFIG_OPTION_{number:03}=y\n" for number in range(300))
    difference = difference_of(
        a_kernel(tmp_path, "path:a", drivers + "CONFIG_ZLAST=1\n"),
        a_kernel(tmp_path, "path:b", options + "CONFIG_ZLAST=2\n"),
    )
    text = text_of(difference)
    assert all(f"+OPTION_{number:03}" in text for number in range(300))
    assert "ZLAST 1 → 2" in text
    assert "and 192 more (--all)" in text


def test_nothing_is_cut_where_there_is_little_in_total(tmp_path: Path) -> None:
    menu = "#\n# Device Drivers\n#\n{}# end of Device Drivers\n"
    few = menu.format("".join(f"CONFIG_DRIVER_{number:03}=m\n" for number in range(40)))
    difference = difference_of(
        a_kernel(tmp_path, "path:a", menu.format("CONFIG_A=y\n")), a_kernel(tmp_path, "path:b", few)
    )
    text = text_of(difference)
    assert "DRIVER_039" in text
    assert "--all" not in text


MENU = "#\n# Mitigations\n#\n{}# end of Mitigations\n"
OLDER = MENU.format("CONFIG_RETPOLINE=y\nCONFIG_SLS=y\nCONFIG_RETHUNK=y\n")
NEWER = MENU.format(
    "CONFIG_MITIGATION_RETPOLINE=y\n# CONFIG_MITIGATION_SLS is not set\nCONFIG_MITIGATION_RETHUNK=y\n"
)


def test_an_option_that_was_renamed_is_one_option(tmp_path: Path) -> None:
    older, newer = a_kernel(tmp_path, "path:6.1", OLDER), a_kernel(tmp_path, "path:6.12", NEWER)
    difference = difference_of(older, newer)
    assert [(renaming.before, renaming.after) for renaming in difference.renamed] == [
        ("CONFIG_RETHUNK", "CONFIG_MITIGATION_RETHUNK"),
        ("CONFIG_RETPOLINE", "CONFIG_MITIGATION_RETPOLINE"),
        ("CONFIG_SLS", "CONFIG_MITIGATION_SLS"),
    ]
    (changed,) = difference.options
    assert (changed.option, changed.renamed_from) == ("CONFIG_MITIGATION_SLS", "CONFIG_SLS")
    assert (changed.before, changed.after, changed.cause) == ("y", None, OptionCause.OWN)
    text = text_of(difference)
    assert "RETPOLINE → MITIGATION_RETPOLINE" in text
    assert "−MITIGATION_SLS  SLS before it was renamed" in text
    back = difference_of(newer, older)
    assert [(renaming.before, renaming.after) for renaming in back.renamed][1] == (
        "CONFIG_MITIGATION_RETPOLINE",
        "CONFIG_RETPOLINE",
    )
    assert [(renaming.option, renaming.before, renaming.after) for renaming in back.options] == [
        ("CONFIG_MITIGATION_SLS", None, "y")
    ]


def test_two_options_that_are_both_offered_are_no_renamed_one(tmp_path: Path) -> None:
    both = OLDER + "CONFIG_MITIGATION_RETPOLINE=y\n"
    difference = difference_of(a_kernel(tmp_path, "path:a", both), a_kernel(tmp_path, "path:b", NEWER))
    assert "CONFIG_RETPOLINE" in {option.option for option in difference.options}


def test_news_of_the_kernel_itself_are_shown_before_drivers_and_capabilities(tmp_path: Path) -> None:
    drivers = "".join(f"CONFIG_DRIVER_{number:03}=m\n" for number in range(100))
    hidden = "".join(f"CONFIG_ARCH_HAS_{number:03}=y\n" for number in range(100))
    options = "".join(f"CONFIG_NEWS_{number:03}=y\n" for number in range(60))
    newer = MENU.format("CONFIG_A=y\n" + hidden + options + drivers)
    older = MENU.format("CONFIG_A=y\n")
    after = a_kernel(tmp_path, "path:b", newer, release="6.12.1")
    difference = difference_of(a_kernel(tmp_path, "path:a", older), after)
    text = text_of(difference)
    assert "60 one of the two does not offer" in text
    assert "NEWS_059" in text
    assert text.count("and 92 more (--all)") == 2
    assert "DRIVER_099" not in text
    assert {f"CONFIG_DRIVER_{number:03}" for number in range(100)} < {
        option.option for option in difference.options
    }


@pytest.mark.parametrize(("source", "error"), [("/nowhere", NotASource), ("debian:nothing", SourceUnusable)])
def test_a_source_that_is_none_is_refused(source: str, error: type[KtrialError], tmp_path: Path) -> None:
    kernel, reordered = a_kernel(tmp_path, "path:a"), a_kernel(tmp_path, "path:b", SLAB)
    with pytest.raises((error, SourceUnusable)):
        difference_of(kernel, reordered, sources=[source])


def test_names_and_values_with_markup_do_no_harm(tmp_path: Path) -> None:
    bad = 'CONFIG_X="<script>alert(1)</script>\x1b[31m"\n#\n# <b>Menu\n#\n'
    difference = difference_of(a_kernel(tmp_path, "path:a"), a_kernel(tmp_path, "path:<b>", bad))
    page = kernel_difference_html(difference)
    assert "<script>" not in page
    assert "<b>Menu" not in page
    assert "\x1b" not in text_of(difference) + page


def test_a_difference_is_stored_with_its_study_and_comes_back(tmp_path: Path) -> None:
    difference = difference_of(built(tmp_path, "build:one"), built(tmp_path, "build:other", SLAB))
    with open_store(tmp_path / "x.db") as store:
        study = store.study(a_study())
        store.add_kernel_difference(study, difference)
        store.add_kernel_difference(study, difference)
        assert store.kernel_differences(study) == (difference,)
        store.delete(study)
        assert store.kernel_differences(study) == ()


def ran(*arguments: str) -> str:
    result = CliRunner().invoke(app, ["diff", *arguments])
    assert result.exit_code == 0, result.exception
    return result.stdout


@pytest.fixture
def two(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[str, str]:
    monkeypatch.setenv("KTRIAL_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("COLUMNS", "80")
    names = []
    for name, config in (("one", SLUB), ("other", SLAB)):
        (tmp_path / f"{name}.config").write_text(config)
        names.append(f"path:{make.vmlinuz(tmp_path, name)}")
        kernel_registry.add(names[-1], config=tmp_path / f"{name}.config")
    return names[0], names[1]


def test_the_command_prints_text_json_and_a_page(two: tuple[str, str], tmp_path: Path) -> None:
    assert ran(*two).startswith("They differ in ")
    data = json.loads(ran(*two, "--json"))
    assert data["respects"] == ["options"]
    assert {option["option"] for option in data["options"]} >= {"CONFIG_SLAB", "CONFIG_SLUB"}
    assert "report: " in ran(*two, "--html", str(tmp_path / "x/page.html"))
    assert "SLAB allocator options" in (tmp_path / "x/page.html").read_text()
    assert ran(two[0], two[0]).startswith("No difference")


def test_a_page_that_cannot_be_written_is_an_error(two: tuple[str, str], tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    result = CliRunner().invoke(app, ["diff", *two, "--html", str(tmp_path / "file" / "page.html")])
    assert isinstance(result.exception, KtrialError)


def test_what_follows_stands_below_what_it_follows_from(tmp_path: Path) -> None:
    from tests.support.kconfig_trees import known, some_rules

    from ktrial.kernels.kernel_difference import changed_options

    rules = some_rules(tmp_path / "linux")
    options = changed_options(known(SLUB, rules), known(SLAB, rules), same_source=True)
    plain = difference_of(built(tmp_path, "build:one"), built(tmp_path, "build:other", SLAB))
    folded = plain.model_copy(update={"options": options, "folded": True})
    (group,) = shown(folded).groups
    (line,) = group.lines
    assert (line.text, line.prompt) == ("SLUB → SLAB", "Choose SLAB allocator")
    assert line.followers == ("−SLUB_CPU_PARTIAL", "−SLUB_DEBUG", "−STACKDEPOT")


def test_a_child_that_was_set_against_its_default_stands_unfolded(tmp_path: Path) -> None:
    from tests.support.kconfig_trees import known, some_rules

    from ktrial.kernels.kernel_difference import changed_options

    rules = some_rules(tmp_path / "linux")
    debugged = SLAB.replace("# CONFIG_DEBUG_SLAB is not set", "CONFIG_DEBUG_SLAB=y")
    options = changed_options(known(SLUB, rules), known(debugged, rules), same_source=True)
    plain = difference_of(built(tmp_path, "build:one"), built(tmp_path, "build:other", SLAB))
    folded = plain.model_copy(update={"options": options, "folded": True})
    change = shown(folded)
    assert "1 option (and 1 set against its default)" in change.sentence.replace("\u00a0", " ")
    (group,) = change.groups
    assert [(line.text, line.prompt) for line in group.lines] == [
        ("SLUB → SLAB", "Choose SLAB allocator"),
        ("+DEBUG_SLAB", "Debug slab memory allocations (set against its default, beside SLAB)"),
    ]
    assert "+DEBUG_SLAB" not in group.lines[0].followers
