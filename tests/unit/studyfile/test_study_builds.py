"""Kernels that a study describes, factors that change how they are built, and mistakes in both."""

import tomllib
from pathlib import Path

import pytest
from tests.support.command_line import KNOWN

from ktrial.model.base import digest
from ktrial.model.design import FactorKind
from ktrial.model.kernel import BuildChange
from ktrial.model.study import Study, build_of, builds_of, kernel_name, treatments
from ktrial.studyfile.errors import StudyMistake, StudySyntaxError
from ktrial.studyfile.reader import load
from ktrial.studyfile.writer import study_toml

HEAD = 'workloads = ["fork"]\n[machine]\nkernel = "mine"\n'
MINE = '[kernels.mine]\nsource = "debian:linux-source-6.1"\n'
ALLOCATOR = '[factors.allocator]\nkind = "kconfig"\nlevels = ["SLAB=y", "SLUB=y SLUB_DEBUG=n"]\n'


def read(tmp_path: Path, text: str, *patches: str) -> Study:
    for name in ("a.patch", "b.patch"):
        (tmp_path / name).write_text(f"a patch: {name}\n")
    file = tmp_path / "study.toml"
    file.write_text(text)
    return load(file, KNOWN, patches)


def mistake(tmp_path: Path, text: str) -> str:
    with pytest.raises(StudyMistake) as raised:
        read(tmp_path, text)
    return raised.value.message.replace(f"{tmp_path}/", "")


def test_a_kernel_that_is_described_is_built_as_its_table_says(tmp_path: Path) -> None:
    text = (
        'workloads = ["fork"]\n[factors.kernel]\nlevels = ["debian:6.1", "mine"]\n'
        '[kernels.mine]\nsource = "linux"\nconfig = "defconfig"\n'
        'options = { SLAB = "y", CONFIG_HZ = 250 }\npatches = ["a.patch"]\nmake = { KCFLAGS = "-O3" }\n'
    )
    study = read(tmp_path, text)
    fetched, built = treatments(study)
    assert kernel_name(study, fetched) == "debian:6.1"
    assert build_of(study, fetched) is None
    build = build_of(study, built)
    assert build
    assert kernel_name(study, built) == build.name
    assert build.source == str(tmp_path / "linux")
    assert (build.config, build.make) == ("defconfig", {"KCFLAGS": "-O3"})
    assert build.options == {"CONFIG_SLAB": "y", "CONFIG_HZ": "250"}
    assert [patch.path for patch in build.patches] == [str(tmp_path / "a.patch")]
    assert built.label == "mine"


def test_kinds_of_factors_change_the_build_and_cross_with_others(tmp_path: Path) -> None:
    text = (
        f"{HEAD}{MINE}{ALLOCATOR}"
        '[factors.HZ]\nkind = "kconfig"\nlevels = [250, 1000]\n'
        '[factors.scheduler]\nkind = "patch"\nlevels = ["", "a.patch", "b.patch a.patch"]\n'
        '[factors.flags]\nkind = "compiler-flags"\nlevels = ["", "-O3"]\n'
        '[factors.preempt]\nkind = "boot"\nlevels = ["none", "full"]\n'
    )
    study = read(tmp_path, text)
    every = treatments(study)
    assert len(every) == 2 * 2 * 3 * 2 * 2
    assert len(builds_of(study, every)) == 2 * 2 * 3 * 2, "a boot parameter needs no other kernel"
    last = build_of(study, every[-1])
    assert last
    assert last.options == {"CONFIG_SLUB": "y", "CONFIG_SLUB_DEBUG": "n", "CONFIG_HZ": "1000"}
    assert [Path(patch.path).name for patch in last.patches] == ["b.patch", "a.patch"]
    assert last.make == {"KCFLAGS": "-O3"}
    first = build_of(study, every[0])
    assert first
    assert (first.patches, first.make) == ((), {})
    allocator, hz, scheduler, *_ = study.factors
    assert (allocator.target, hz.target) == ("", "HZ")
    assert scheduler.levels == ("", "a.patch", "b.patch a.patch")
    assert every[0].label == "SLAB=y · HZ=250 · scheduler=(not given) · flags=(not given) · preempt=none"


def test_the_source_can_be_a_factor(tmp_path: Path) -> None:
    text = (
        'workloads = ["fork"]\n[machine]\nkernel = "mine"\n[kernels.mine]\nconfig = "guest"\n'
        '[factors.version]\nkind = "source"\nlevels = ["debian:linux-source-5.10", "old/linux"]\n'
    )
    study = read(tmp_path, text)
    resources = [build.source for build in builds_of(study, treatments(study)).values()]
    assert resources == ["debian:linux-source-5.10", str(tmp_path / "old/linux")]
    assert study.factors[0].levels[1] == str(tmp_path / "old/linux")
    assert "source" not in tomllib.loads(study_toml(study))["kernels"]["mine"]
    assert read(tmp_path, study_toml(study)) == study


@pytest.mark.parametrize(("design", "count"), [("full-factorial", 4), ("one-factor-at-a-time", 3)])
def test_designs(tmp_path: Path, design: str, count: int) -> None:
    patch = '[factors.scheduler]\nkind = "patch"\nlevels = ["", "a.patch"]\n'
    study = read(tmp_path, f'design = "{design}"\n{HEAD}{MINE}{ALLOCATOR}{patch}')
    assert len(builds_of(study, treatments(study))) == count


def test_listed_treatments_name_patches_as_the_file_does(tmp_path: Path) -> None:
    folder = tmp_path / "series"
    folder.mkdir()
    (folder / "one.patch").write_text("one")
    text = (
        f'treatments = [{{ scheduler = "series/one.patch" }}]\n{HEAD}{MINE}'
        '[factors.scheduler]\nkind = "patch"\nlevels = ["", "series/one.patch"]\n'
    )
    study = read(tmp_path, text)
    _, patched = treatments(study)
    assert patched.levels == {"scheduler": "one.patch"}
    build = build_of(study, patched)
    assert build
    assert [patch.path for patch in build.patches] == [str(folder / "one.patch")]


def test_patches_of_one_name_are_told_apart_by_their_paths(tmp_path: Path) -> None:
    for folder in ("old", "new"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "my.patch").write_text(folder)
    levels = 'levels = ["", "old/my.patch", "new/my.patch"]\n'
    study = read(tmp_path, f'{HEAD}{MINE}[factors.p]\nkind = "patch"\n{levels}')
    assert study.factors[0].levels == ("", "old/my.patch", "new/my.patch")


def test_levels_of_several_patches_have_short_names(tmp_path: Path) -> None:
    names = [f"000{n}-MultiQueue-Skiplist-Scheduler-v0.205-part-{n}.patch" for n in (1, 2, 3)]
    for name in names:
        (tmp_path / name).write_text(name)
    one, two, three = names
    levels = f'levels = ["", "{one} {two}", "{two} {three}", "a.patch b.patch"]\n'
    study = read(tmp_path, f'{HEAD}{MINE}[factors.p]\nkind = "patch"\n{levels}')
    assert study.factors[0].levels == ("", f"{one} and 1 more", f"{two} and 1 more", "a.patch b.patch")
    assert [patch.path for patch in study.factors[0].changes[f"{one} and 1 more"].patches] == [
        str(tmp_path / name) for name in (one, two)
    ]
    (tmp_path / "again.toml").write_text(study_toml(study))
    assert load(tmp_path / "again.toml", KNOWN) == study
    alike = f'levels = ["", "{one} {two}", "{one} {three}"]\n'
    study = read(tmp_path, f'{HEAD}{MINE}[factors.p]\nkind = "patch"\n{alike}')
    assert study.factors[0].levels == ("", f"{one} {two}", f"{one} {three}"), "they tell them apart"


def test_the_study_file_of_a_report_is_the_same_study(tmp_path: Path) -> None:
    text = (
        f'treatments = [{{ scheduler = "a.patch" }}]\n{HEAD}{MINE}'
        'options = { HZ = 250 }\npatches = ["b.patch"]\n'
        f'make = {{ KAFLAGS = "-g" }}\n{ALLOCATOR}[factors.scheduler]\nkind = "patch"\n'
        'levels = ["", "a.patch"]\nbaseline = ""\n'
    )
    study = read(tmp_path, text)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "study.toml").write_text(study_toml(study))
    again = load(elsewhere / "study.toml", KNOWN)
    assert again == study
    assert digest(again) == digest(study)


def test_a_study_without_builds_has_the_digest_that_it_always_had(tmp_path: Path) -> None:
    """Stored studies are found by it, and resumed."""
    study = read(tmp_path, 'workloads = ["fork"]\n[factors.kernel]\nlevels = ["debian:6.1", "debian:6.12"]\n')
    plain = study.model_dump(mode="json")
    assert "builds" not in plain
    assert set(plain["factors"][0]) == {"name", "kind", "levels", "baseline", "target"}
    assert Study.model_validate(plain) == study


def test_stored_builds_come_back(tmp_path: Path) -> None:
    study = read(tmp_path, f"{HEAD}{MINE}{ALLOCATOR}")
    assert Study.model_validate(study.model_dump(mode="json")) == study
    assert study.factors[0].changes["SLAB=y"] == BuildChange(options={"CONFIG_SLAB": "y"})


AWAITED = f'{HEAD}{MINE}[factors.scheduler]\nkind = "patch"\nlevels = ["", "?"]\n'


def test_a_patch_that_the_user_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here = tmp_path / "here, where I stand"
    here.mkdir()
    (here / "muqss.patch").write_text("muqss")
    monkeypatch.chdir(here)
    for given in ("muqss.patch", "scheduler=muqss.patch", str(here / "muqss.patch")):
        study = read(tmp_path, AWAITED, given)
        [factor] = study.factors
        assert factor.kind is FactorKind.PATCH
        assert factor.levels == ("", "muqss.patch")
        assert factor.changes["muqss.patch"].patches[0].path == str(here / "muqss.patch")


PATCHED = '[factors.scheduler]\nkind = "patch"\nlevels = ["", "a.patch"]\n'


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (HEAD + "[kernels.mine]\n" + ALLOCATOR, 'study.toml:4: kernels.mine: the key "source" is missing'),
        (
            HEAD + MINE + 'sauce = "x"\n' + ALLOCATOR,
            'study.toml:6: kernels.mine.sauce: there is no key "sauce"; did you mean "source"?',
        ),
        (
            HEAD + '[kernels.mine]\nsource = "nowhere"\n' + ALLOCATOR,
            "study.toml:5: kernels.mine.source: nowhere is not a kernel's source tree: there is no such dir",
        ),
        (
            HEAD + MINE + "options = { SLAB = true }\n" + ALLOCATOR,
            'kernels.mine.options.SLAB: found true: an option is "y", "n", "m", a number or text',
        ),
        (
            HEAD + MINE + 'options = { "A B" = "y" }\n' + ALLOCATOR,
            "kernels.mine.options.\"A B\": 'A B=y' sets no configuration option",
        ),
        (
            HEAD + MINE + 'patches = ["a.patch",\n"c.patch"]\n' + ALLOCATOR,
            "study.toml:7: kernels.mine.patches[1]: ",
        ),
        (
            HEAD + MINE + 'patches = ["a.patch", "a.patch"]\n' + ALLOCATOR,
            "kernels.mine.patches[1]: the same patch is here twice",
        ),
        (
            HEAD + MINE + 'options = { SLAB = "y", CONFIG_SLAB = "n" }\n' + PATCHED,
            "kernels.mine.options: an option is here twice: with CONFIG_ and without",
        ),
        (
            HEAD + MINE + '[kernels.other]\nsource = "other"\n' + ALLOCATOR,
            "study.toml:6: kernels.other: nothing names this kernel: [machine] kernel",
        ),
        (
            'workloads = ["fork"]\n[factors.kernel]\nlevels = ["mine", "same"]\n'
            + MINE
            + '[kernels.same]\nsource = "debian:linux-source-6.1"\nconfig = "guest"\n',
            'study.toml:6: kernels.same: "same" and "mine" are the same kernel',
        ),
        (
            HEAD.replace("mine", "mime") + MINE + ALLOCATOR,
            "or a table [kernels.NAME] of this study: mine",
        ),
        (
            HEAD.replace("mine", "mime") + MINE + ALLOCATOR,
            'study.toml:3: machine.kernel: found "mime": this study has no table [kernels.mime] '
            "(did you mean mine?)",
        ),
        (HEAD + ALLOCATOR, "or a table [kernels.NAME] of this study"),
        (
            HEAD + MINE + 'options = ["SLAB=y"]\n' + ALLOCATOR,
            "study.toml:6: kernels.mine.options: found a list; allowed: a table of options",
        ),
        (
            HEAD + MINE + 'make = "KCFLAGS=-O3"\n' + ALLOCATOR,
            'study.toml:6: kernels.mine.make: found "KCFLAGS=-O3"; allowed: a table of variables',
        ),
        (
            HEAD + MINE + 'patches = "a.patch"\n' + ALLOCATOR,
            'study.toml:6: kernels.mine.patches: found "a.patch"; allowed: a list of files',
        ),
        (
            HEAD + MINE + "config = 3\n" + ALLOCATOR,
            "study.toml:6: kernels.mine.config: found 3; allowed: guest, defconfig, debian, or a file",
        ),
        (
            'workloads = ["fork"]\nkernels = ["mine"]\n' + ALLOCATOR,
            "kernels: found a list; allowed: tables of kernels to be built from source",
        ),
        (
            'workloads = ["fork"]\n[kernels]\nmine = "debian:linux-source-6.1"\n' + ALLOCATOR,
            'kernels.mine: found "debian:linux-source-6.1"; allowed: a table with source, config, options',
        ),
        (
            HEAD.replace("mine", "debian:6.1") + ALLOCATOR,
            "study.toml:3: machine.kernel: the factor allocator changes how a kernel is built, and "
            '"debian:6.1" is not built here',
        ),
        (
            'workloads = ["fork"]\n[factors.kernel]\nlevels = ["mine", "debian:6.1"]\n' + MINE + PATCHED,
            "study.toml:3: factors.kernel.levels[1]: the factor scheduler changes how a kernel is built",
        ),
        (
            HEAD + MINE + ALLOCATOR.replace('"SLAB=y"', '"SLAB"'),
            'factors.allocator.levels[0]: found "SLAB"; allowed: options with their values',
        ),
        (
            HEAD + MINE + ALLOCATOR.replace('"SLAB=y"', '"SLAB=y SLAB=n"'),
            "factors.allocator.levels[0]: CONFIG_SLAB is here twice",
        ),
        (
            HEAD + MINE + ALLOCATOR.replace('"SLAB=y"', '"SLAB=y", "CONFIG_SLAB=y"'),
            'factors.allocator.levels[1]: "CONFIG_SLAB=y" and "SLAB=y" are the same',
        ),
        (
            HEAD + MINE + ALLOCATOR + '[factors.SLUB]\nkind = "kconfig"\nlevels = ["y", "n"]\n',
            "factors.SLUB: the factor allocator decides about the option CONFIG_SLUB already",
        ),
        (
            HEAD + MINE + 'options = { SLAB = "y" }\n' + ALLOCATOR,
            "factors.allocator: the kernel mine decides about the option CONFIG_SLAB already: it can be one",
        ),
        (
            HEAD + MINE + 'make = { KCFLAGS = "-O3" }\n'
            '[factors.flags]\nkind = "compiler-flags"\nlevels = ["", "-O1"]\n',
            "factors.flags: the kernel mine decides about KCFLAGS of make already",
        ),
        (
            HEAD + MINE + PATCHED + PATCHED.replace("scheduler", "again"),
            "factors.again: the factor scheduler decides about the patch a.patch (content ",
        ),
        (
            HEAD + MINE + PATCHED.replace('"a.patch"', '"c.patch"'),
            "study.toml:8: factors.scheduler.levels[1]: ",
        ),
        (
            HEAD + MINE + '[factors.version]\nkind = "source"\nlevels = ["a", "b"]\n',
            "kernels.mine.source: the source is the factor version, and fixed here too",
        ),
        (
            HEAD + MINE + '[factors.flags]\nkind = "compiler-flags"\nlevels = [1, 2]\n',
            "factors.flags.levels[0]: found 1; allowed: flags of the compiler",
        ),
        (
            HEAD + MINE + '[factors.a]\nkind = "compiler-flags"\nlevels = ["", "-O1"]\n'
            '[factors.b]\nkind = "compiler-flags"\nlevels = ["", "-O3"]\n',
            "factors.b: a is the compiler's flags already; there can be one only",
        ),
        (
            HEAD + MINE.replace("mine", '"my kernel"') + ALLOCATOR,
            'kernels."my kernel": another name: letters',
        ),
    ],
)
def test_mistakes(tmp_path: Path, text: str, said: str) -> None:
    assert said in mistake(tmp_path, text)


def test_a_kernel_that_is_described_twice_is_named_as_the_file_has_it(tmp_path: Path) -> None:
    with pytest.raises(StudySyntaxError, match=r"study.toml:6:14: .*the table .kernels.mine. is here twice"):
        read(tmp_path, HEAD + MINE + MINE + ALLOCATOR)
