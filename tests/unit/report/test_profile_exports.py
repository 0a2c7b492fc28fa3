"""What other tools read: each format is read back by its readers' own rules, and says what was counted."""

import json
import re
from collections import Counter
from importlib.metadata import EntryPoint
from typing import Any

import jsonschema
import pytest
from tests.support.places import DATA
from tests.support.profiles import a_profile, with_calls
from tests.unit.report.test_flame_graph import AFTER, BEFORE, told

from ktrial.model.profile import Profile
from ktrial.report.call_tree import folded_pair
from ktrial.report.exports import exports, folded
from ktrial.report.exports.perf_script import SAMPLES

SCHEMA = DATA / "speedscope_schema.json"
MANY = with_calls(told("entry;fork;copy 7000000\nentry;fork 2000001\nentry 999\nirq 40000"))


def exported(name: str, profile: Profile) -> str:
    return exports()[0][name].text(profile)


def speedscope(profile: Profile) -> dict[str, Any]:
    file: dict[str, Any] = json.loads(exported("speedscope", profile))
    return file


def collapsed(text: str) -> Counter[str]:
    """Stacks and samples, by the rules of stackcollapse-perf.pl: its patterns, and 1 for each sample."""
    stacks: Counter[str] = Counter()
    command, stack = "", list[str]()
    for line in text.split("\n"):
        if not line:
            stacks[";".join((command, *reversed(stack)))] += bool(stack)
            stack = []
        elif event := re.match(r"(\S+\s*?\S*?)\s+(\d+)/(\d+)", line):
            command = event[1].replace(" ", "_")
        elif frame := re.match(r"\s*(\w+)\s*(.+) \((\S*)\)", line):
            stack.append(re.sub(r"\(.*", "", frame[2].replace(";", ":")))
        else:
            raise AssertionError(f"Unrecognized line: {line}")
    return +stacks


def test_every_format_has_a_name_and_a_summary() -> None:
    formats, warnings = exports()
    assert set(formats) == {"flame-graph", "folded", "perf-script", "speedscope", "vector"}
    assert all(export.summary and name == export.name for name, export in formats.items())
    assert warnings == ()


def test_speedscope_s_schema_allows_the_file() -> None:
    jsonschema.validate(speedscope(MANY), json.loads(SCHEMA.read_text()))


def test_speedscope_s_schema_allows_not_just_anything() -> None:
    broken = speedscope(MANY)
    del broken["profiles"][0]["weights"]
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(broken, json.loads(SCHEMA.read_text()))


def test_speedscope_is_told_every_instruction() -> None:
    file = speedscope(MANY)
    (profile,) = file["profiles"]
    names = [frame["name"] for frame in file["shared"]["frames"]]
    stacks = {
        ";".join(names[place] for place in stack): weight
        for stack, weight in zip(profile["samples"], profile["weights"], strict=True)
    }
    assert stacks == {"entry;fork;copy": 7000000, "entry;fork": 2000001, "entry": 999, "irq": 40000}
    assert profile["endValue"] == sum(profile["weights"]) == MANY.region.instructions


def test_perf_s_stacks_have_samples_in_proportion_to_their_instructions() -> None:
    stacks = collapsed(exported("perf-script", MANY))
    total = MANY.region.instructions
    period = total // SAMPLES
    assert sum(stacks.values()) == total // period
    assert set(stacks) == {"fork;entry;fork;copy", "fork;entry;fork", "fork;entry", "fork;irq"}
    for stack, count in {"entry;fork;copy": 7000000, "entry;fork": 2000001, "irq": 40000}.items():
        assert abs(stacks[f"fork;{stack}"] * period - count) <= period


def test_perf_s_samples_say_their_period_and_times_go_on() -> None:
    text = exported("perf-script", MANY)
    # FlameScope's pattern of an event, and the one by which the Firefox Profiler knows the format.
    times = [float(time) for time in re.findall(r"(?m)^\S.* +([0-9.]+): .+?:", text)]
    assert len(times) == sum(collapsed(text).values())
    assert times == sorted(times)
    first = text.split("\n", 1)[0]
    assert re.match(r"\S.*?\s+(?:\d+/)?\d+\s+(?:\[\d+\]\s+)?[\d.]+:", first)
    assert re.search(rf"\s{MANY.region.instructions // SAMPLES} instructions: $", first)


def test_perf_names_the_kernel_a_module_and_a_program_by_their_files() -> None:
    text = exported("perf-script", a_profile({("map", "ext4"): 30, ("fork", ""): 20}, program=50))
    frames = set(re.findall(r"\t *[0-9a-f]{6,16} (.+) \((\S+)\)", text))
    assert frames == {
        ("map", "[ext4]"),
        ("fork", "[kernel.kallsyms]"),
        ("work", "work"),
        ("[program]", "work"),
    }


def test_names_with_spaces_and_brackets_stay_one_frame() -> None:
    strange = a_profile({("a (b) c;d", ""): 10})
    assert set(collapsed(exported("perf-script", strange))) == {"fork;a__b__c:d"}
    assert exported("folded", strange).splitlines() == ["a (b) c:d 10"]


def test_a_small_profile_has_each_instruction_as_a_sample() -> None:
    stacks = collapsed(exported("perf-script", with_calls(BEFORE)))
    assert stacks == {f"fork;{';'.join(stack)}": int(count) for stack, count in BEFORE.items()}


def test_a_pair_is_read_as_flamegraph_pl_reads_it() -> None:
    for line in folded_pair(BEFORE, AFTER, 10):
        first = re.fullmatch(r"(.*)\s+?(\d+(?:\.\d*)?)", line)
        assert first
        second = re.fullmatch(r"(.*)\s+?(\d+(?:\.\d*)?)", first[1])
        assert second
        stack = tuple(second[1].split(";"))
        assert (int(second[2]), int(first[2])) == (10 * BEFORE.get(stack, 0), 10 * AFTER.get(stack, 0))


def test_a_vector_has_each_operation_and_means_of_bundles() -> None:
    plain = a_profile({("fork", ""): 20}, operations=4, bundle=3)
    counts = plain.region.operations.model_copy(update={"vector": (3, 6, 7, 4)})
    region = plain.region.model_copy(update={"operations": counts})
    text = exported("vector", plain.model_copy(update={"region": region}))
    assert text == "1\n2\n2.333333\n1.333333\n"


def test_another_package_s_format_is_found_and_a_broken_one_warns(monkeypatch: pytest.MonkeyPatch) -> None:
    group = "ktrial.profile_exports"
    installed = [
        EntryPoint("more", "ktrial.report.exports.folded:EXPORT", group),
        EntryPoint("broken", "ktrial.report.exports.folded:nothing", group),
        EntryPoint("other", "ktrial.format.number_format:NONE", group),
    ]
    monkeypatch.setattr("ktrial.plugin_discovery.entry_points", lambda group: installed)
    formats, warnings = exports()
    assert formats["folded"] is folded.EXPORT
    assert [warning.text.split(" (")[0] for warning in warnings] == [
        "the profile export broken",
        "the profile export other",
    ]
