"""How mistakes in a study are told: where, what stands there, what is allowed; in files, in options."""

from datetime import date
from pathlib import Path

import pytest
from tests.support.command_line import KNOWN

from ktrial.studyfile.diagnostics import KeyPath, Mistakes, Positions, StudySource, key_of, shown, unknown
from ktrial.studyfile.errors import PatchNotAwaited, PatchNotGiven, StudyError, StudyMistake
from ktrial.studyfile.reader import load, study_from


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({}, "an empty table"),
        ({"a": 1}, "a table"),
        ([], "an empty list"),
        ([1], "a list"),
        ("größer", '"größer"'),
        ("a\nb", '"a\\nb"'),
        (True, "true"),
        (1.5, "1.5"),
        (date(2024, 1, 2), "2024-01-02"),
        ("x" * 58, f'"{"x" * 58}"'),
        ("x" * 59, f'"{"x" * 39}… (61 characters)'),
        (1 << 999, str(1 << 999)[:40] + "… (301 characters)"),
        (1 << 1000, "a number of 1001 bits"),
    ],
)
def test_a_value_is_shown_as_the_file_has_it_on_one_short_line(value: object, text: str) -> None:
    assert shown(value) == text


@pytest.mark.parametrize(
    ("path", "key"),
    [
        ((), ""),
        (("seed",), "seed"),
        (("factors", "vm.swappiness", "levels", 1), 'factors."vm.swappiness".levels[1]'),
        (("workloads", 2, "metrics", 0, "name"), "workloads[2].metrics[0].name"),
        (("factors", 'a"b'), 'factors."a\\"b"'),
    ],
)
def test_a_place_is_named_as_a_reader_would_write_it(path: KeyPath, key: str) -> None:
    assert key_of(path) == key


@pytest.mark.parametrize(
    ("name", "allowed", "text"),
    [
        (
            "hackbnch",
            ("fork", "hackbench"),
            'there is no workload "hackbnch"; did you mean "hackbench"? There are: fork, hackbench',
        ),
        ("zzz", ("fork", "pipe"), 'there is no workload "zzz". There are: fork, pipe'),
        (
            "frok",
            ("fork", *map(str, range(30))),
            'there is no workload "frok"; did you mean "fork"? All of them: ktrial workload list',
        ),
        ("zzz", (), 'there is no workload "zzz". There are none'),
    ],
)
def test_an_unknown_name_is_told_with_the_nearest_and_all_there_are(
    name: str, allowed: tuple[str, ...], text: str
) -> None:
    assert unknown("workload", name, allowed) == text


TOML = """\
# a comment
top = 1
dotted.key = [ # another
    1,
    { in = 2 },
]
"quo\\u0074ed" = 3
[table] # a third
a = 1
[[array]]
x = 1
[[array]]
x = 2
[array.below]
y = 1
[[array.deep]]
z = 1
[[array.deep]]
z = 2
"""


LINES: dict[KeyPath, int | None] = {
    ("top",): 2,
    ("dotted",): 3,
    ("dotted", "key"): 3,
    ("dotted", "key", 0): 4,
    ("dotted", "key", 1): 5,
    ("dotted", "key", 1, "in"): 5,
    ("quoted",): 7,
    ("table",): 8,
    ("table", "a"): 9,
    ("table", "missing"): 8,
    ("array",): 10,
    ("array", 0): 10,
    ("array", 0, "x"): 11,
    ("array", 1): 12,
    ("array", 1, "x"): 13,
    ("array", 1, "below"): 14,
    ("array", 1, "below", "y"): 15,
    ("array", 1, "deep", 0, "z"): 17,
    ("array", 1, "deep", 1): 18,
    ("array", 1, "deep", 1, "z"): 19,
    ("nowhere",): None,
    (): None,
}


def test_each_key_has_its_line() -> None:
    positions = Positions(TOML)
    assert {path: positions.line(path) for path in LINES} == LINES


def told(source: StudySource, data: dict[str, object], *mistake: tuple[KeyPath, str]) -> str:
    mistakes = Mistakes(source, data)
    for path, problem in mistake:
        mistakes.add(path, problem)
    assert bool(mistakes) is bool(mistake)
    with pytest.raises(StudyError) as said:
        mistakes.raise_any()
    return str(said.value)


def test_a_mistake_is_told_with_the_file_the_line_and_the_key() -> None:
    source = StudySource("s.toml", "a = 1\nb = 2\n")
    data: dict[str, object] = {"a": 1, "b": 2}
    assert told(source, data, (("b",), "wrong")) == "s.toml:2: b: wrong"
    assert told(source, data, (("c",), "missing")) == "s.toml: missing"
    several = told(
        source, data, (("b",), "wrong"), (("a",), "wrong, too"), (("b",), "wrong"), (("c",), "not there")
    )
    assert several == "s.toml: 3 mistakes:\n  not there\n  line 1: a: wrong, too\n  line 2: b: wrong"


def test_on_a_command_line_options_stand_for_keys() -> None:
    source = StudySource("ktrial compare", options={"workloads": "--workload", "margin": "--margin"})
    data: dict[str, object] = {"workloads": ["x"], "margin": 7, "seed": 1}
    assert told(source, data, (("workloads", 0), "wrong")) == "--workload: wrong"
    assert told(source, data, (("seed",), "wrong")) == "ktrial compare: seed: wrong"


def test_without_mistakes_nothing_is_raised() -> None:
    Mistakes(StudySource("s.toml"), {}).raise_any()


def test_a_study_of_nothing_is_empty() -> None:
    with pytest.raises(StudyError) as said:
        study_from({}, StudySource("nothing.toml"), "x", Path("/"), KNOWN)
    assert str(said.value) == "nothing.toml: the study is empty."


@pytest.mark.parametrize(
    ("file", "name"),
    [
        ("my upgrade.toml", "my-upgrade"),
        ("6.1→6.12.toml", "6.1-6.12"),
        ("-._.toml", "study"),
        (f"{'x' * 70}.toml", "x" * 64),
    ],
)
def test_a_study_without_a_name_is_called_as_its_file(tmp_path: Path, file: str, name: str) -> None:
    levels = 'levels = ["debian:6.1", "debian:6.12"]'
    (tmp_path / file).write_text(f'workloads = ["fork"]\n[factors.kernel]\n{levels}\n')
    assert load(tmp_path / file, KNOWN).name == name


PATCHES = """\
workloads = ["fork"]
[machine]
kernel = "debian:6.1"
[factors.one]
kind = "patch"
levels = ["", "?"]
"""


@pytest.mark.parametrize(
    ("text", "patches", "error", "said"),
    [
        (PATCHES, [], PatchNotGiven, 'factors.one.levels: the level "?" is a patch that you name.'),
        (
            PATCHES,
            ["a.patch", "b.patch"],
            PatchNotAwaited,
            "the patch b.patch has no place in it: no level of it is a patch to be named.",
        ),
        (
            PATCHES.replace('"?"', '"my.patch"'),
            ["a.patch"],
            PatchNotAwaited,
            "the patch a.patch has no place in it: no level of it is a patch to be named.",
        ),
        (
            PATCHES + '[factors.two]\nkind = "patch"\nlevels = ["", "?"]\n',
            ["a.patch"],
            PatchNotAwaited,
            "the patch a.patch has no place in it: for which factor? one, two: --patch FACTOR=FILE.",
        ),
    ],
)
def test_a_patch_that_is_awaited_or_is_not_is_told(
    tmp_path: Path, text: str, patches: list[str], error: type[StudyError], said: str
) -> None:
    (tmp_path / "s.toml").write_text(text)
    with pytest.raises(error) as caught:
        load(tmp_path / "s.toml", KNOWN, patches)
    assert str(caught.value) == f"{tmp_path}/s.toml: {said}"


def test_the_option_that_is_missing_names_the_factor_where_there_are_several(tmp_path: Path) -> None:
    (tmp_path / "s.toml").write_text(PATCHES + '[factors.two]\nkind = "patch"\nlevels = ["", "?"]\n')
    for patches, option in (([], "--patch one=FILE"), (["one=a.patch"], "--patch two=FILE")):
        with pytest.raises(PatchNotGiven) as caught:
            load(tmp_path / "s.toml", KNOWN, patches)
        assert caught.value.advice == f"ktrial run {tmp_path}/s.toml {option}"


@pytest.mark.parametrize(
    ("design", "levels", "blocks", "trials"),
    [
        ("full-factorial", (100, 20), 50, None),
        ("full-factorial", (100, 21), 50, "2100 treatments in 50 blocks are 105000 trials"),
        ("one-factor-at-a-time", (100, 21), 833, None),
        ("one-factor-at-a-time", (100, 21), 834, "120 treatments in 834 blocks are 100080 trials"),
    ],
)
def test_a_study_has_a_hundred_thousand_trials_at_most(
    tmp_path: Path, design: str, levels: tuple[int, int], blocks: int, trials: str | None
) -> None:
    factors = "".join(
        f'[factors."vm.x{place}"]\nlevels = {[*range(count)]}\n' for place, count in enumerate(levels)
    )
    head = f'workloads = ["fork"]\nperturbations = {blocks}\ndesign = "{design}"\n'
    (tmp_path / "s.toml").write_text(f'{head}[machine]\nkernel = "debian:6.1"\n{factors}')
    if trials is None:
        assert load(tmp_path / "s.toml", KNOWN).perturbations == blocks
        return
    with pytest.raises(StudyMistake) as caught:
        load(tmp_path / "s.toml", KNOWN)
    assert str(caught.value).endswith(
        f'factors: {trials}; a study has at most 100000 (design = "one-factor-at-a-time" needs fewer)'
    )
