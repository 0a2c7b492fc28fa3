"""Whatever a program prints: numbers, or an error that says what is wrong; soon, and in little memory."""

import json
import math
import time

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.support.places import FOREIGN, PROGRAM_OUTPUTS
from tests.support.runs_of_tests import by_night, examples

from ktrial import program_outputs
from ktrial.program_outputs import OutputError

FORMATS = program_outputs.installed()[0]
SAMPLES = [
    (name, text)
    for path in sorted([*PROGRAM_OUTPUTS.iterdir(), *FOREIGN.iterdir()])
    if (text := path.read_text())
    for name, each in FORMATS.items()
    if each.recognises(text)
]
MEGABYTE = by_night(1 << 20, 1 << 17)
STRESS = (PROGRAM_OUTPUTS / "stress-ng-0.15.06.yaml").read_text()


def numbers_or_an_error(name: str, text: str) -> None:
    try:
        report = FORMATS[name].read(text)
    except OutputError:
        return
    values = [value for each in report.measured for value in each.values]
    assert values
    assert all(math.isfinite(value) and value >= 0 for value in values)


@settings(max_examples=examples(80), deadline=None, suppress_health_check=list(HealthCheck))
@given(
    st.sampled_from(SAMPLES),
    st.floats(0, 1),
    st.sampled_from(["cut", "", "NaN", "-1", "null", '"', "{", "\n", "1e999", "9" * 500, ",", "\0"]),
)
def test_an_output_that_was_cut_or_changed_gives_numbers_or_an_error(
    sample: tuple[str, str], where: float, piece: str
) -> None:
    name, text = sample
    at = int(where * len(text))
    numbers_or_an_error(name, text[:at] if piece == "cut" else text[:at] + piece + text[at + 1 :])


HOSTILE = {
    "a line of ten megabytes": "x" * (10 * MEGABYTE),
    "ten megabytes of digits": "9" * (10 * MEGABYTE),
    "a million empty lines": "\n" * MEGABYTE,
    "a million braces": "{" * MEGABYTE,
    "a million lists": '{"results": ' + "[" * MEGABYTE,
    "a million spaces": "  " * MEGABYTE + "x",
    "a hundred thousand short lines": "1,2,3,4,5,6\n" * (MEGABYTE // 10),
    "a line of one word again and again": "Requests/sec: " * (MEGABYTE // 10),
    "a million commas": "1" + "," * MEGABYTE,
    "no text": "",
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
@pytest.mark.parametrize("name", FORMATS)
def test_a_hostile_output_is_an_error_in_no_time(name: str, text: str) -> None:
    """Costs CPU time of milliseconds each: it is CPU time that is bounded. An eighth of each by day."""
    before = time.process_time()
    assert not FORMATS[name].recognises(text)
    with pytest.raises(OutputError):
        FORMATS[name].read(text)
    assert time.process_time() - before < by_night(2, 0.5)


def test_a_yaml_bomb_of_aliases_is_refused() -> None:
    bomb = "a0: &a0 [x,x,x,x,x,x,x,x,x]\n" + "".join(
        f"a{level}: &a{level} [{','.join([f'*a{level - 1}'] * 9)}]\n" for level in range(1, 40)
    )
    with pytest.raises(OutputError, match="it has YAML aliases"):
        FORMATS["stress-ng-yaml"].read(STRESS.replace("metrics:", f"{bomb}metrics:"))


@pytest.mark.parametrize(
    "text",
    [
        STRESS.replace("metrics:", "x: !!python/object/apply:os.system [false]\nmetrics:"),
        STRESS.replace("metrics:", "x: " + "[" * 5000 + "\nmetrics:"),
        STRESS + "#" * MEGABYTE,
        STRESS.replace("metrics:", "metrics: [\n"),
        STRESS.replace("- stressor: cpu", "- [cpu]\n    -"),
    ],
    ids=["object", "deep", "long", "open", "list"],
)
def test_other_yaml_makes_no_objects_and_is_refused_or_read_as_text(text: str) -> None:
    numbers_or_an_error("stress-ng-yaml", text)


def test_a_stressor_that_is_called_null_keeps_its_name() -> None:
    text = STRESS.replace("stressor: cpu", "stressor: null") + ""
    assert FORMATS["stress-ng-yaml"].read(text).measured[0].of == "null"


def test_a_deep_document_in_the_right_place_is_refused() -> None:
    deep = '{"results": [{"command": "x", "times": ' + "[" * 100_000 + "]" * 100_000 + "}]}"
    with pytest.raises(OutputError, match="nested too deeply"):
        FORMATS["hyperfine"].read(deep)


def test_a_report_of_five_thousand_commands_is_read() -> None:
    results = [{"command": "x", "times": [0.5]} for _ in range(5_000)]
    report = FORMATS["hyperfine"].read(json.dumps({"results": results}))
    assert report.measured[-1].of == "x (5000)"
