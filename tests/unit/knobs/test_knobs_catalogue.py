"""The catalogue: whole, consistent with itself, found by every name that users have for a knob."""

import itertools
import re
from importlib.metadata import EntryPoint

import pytest

from ktrial import plugin_discovery
from ktrial.knobs import catalogue
from ktrial.knobs.catalogue import reference
from ktrial.knobs.errors import UnknownKnob
from ktrial.knobs.values import check, chosen, form_of
from ktrial.model.knob import Allowed, Default, Knob, KnobKind, KnobLocation, version_of
from ktrial.model.references import filled

KNOBS = catalogue.all_knobs()
SUBSYSTEMS = {"sched", "vm", "thp", "block", "net", "cpu", "cgroup", "boot"}
PAPERS = ("sched_latency_ns", "swappiness", "sched_rt_runtime_us", "dirty_ratio")
"""What the seed papers turn."""


def test_there_are_at_least_eighty_in_every_subsystem_that_was_asked_for() -> None:
    assert len(KNOBS) >= 80
    assert set(catalogue.subsystems()) >= SUBSYSTEMS
    assert not catalogue.installed()[1]


@pytest.mark.parametrize("name", PAPERS)
def test_the_knobs_of_the_papers_are_found_by_their_short_names(name: str) -> None:
    assert catalogue.find(name).name.endswith(name)


@pytest.mark.parametrize(
    ("name", "canonical"),
    [
        ("vm.swappiness", "vm.swappiness"),
        ("kernel.sched_migration_cost_ns", "sched_migration_cost_ns"),
        ("queue/read_ahead_kb", "queue/read_ahead_kb"),
        ("read_ahead_kb", "queue/read_ahead_kb"),
        ("transparent_hugepage", "transparent_hugepage/enabled"),
        ("numa_balancing", "kernel.numa_balancing"),
    ],
)
def test_a_knob_has_its_name_its_sysctl_its_boot_parameter_and_a_short_name(
    name: str, canonical: str
) -> None:
    assert catalogue.find(name).name == canonical


def test_a_name_that_two_knobs_could_mean_is_none() -> None:
    with pytest.raises(UnknownKnob):
        catalogue.find("enabled")


@pytest.mark.parametrize("knob", KNOBS, ids=lambda knob: knob.name)
def test_a_knob_says_all_that_has_to_be_known(knob: Knob) -> None:
    assert re.fullmatch(r"[^.]+|.*\.\.\.|.*[^.]", knob.summary)
    assert len(knob.summary) <= 110
    assert knob.documentation.startswith("Documentation/")
    assert all(bool(place.path) != bool(place.boot) for place in knob.places)
    assert all(place.path.startswith(("/proc/sys/", "/sys/")) for place in knob.places if place.path)
    assert {catalogue.find(name).name for name in knob.coupled} == set(knob.coupled)
    assert not knob.successor or catalogue.get(knob.successor.name)


@pytest.mark.parametrize("knob", KNOBS, ids=lambda knob: knob.name)
def test_places_are_newest_first_and_do_not_overlap(knob: Knob) -> None:
    files = [place for place in knob.places if place.path]
    for newer, older in itertools.pairwise(files):
        assert older.until
        assert version_of(older.until) < version_of(newer.since)


@pytest.mark.parametrize("knob", KNOBS, ids=lambda knob: knob.name)
def test_a_default_is_a_value_that_the_knob_takes(knob: Knob) -> None:
    for default in knob.defaults:
        version = version_of(default.since or default.until or "6.6")
        if default.value:
            check(knob.name, knob, default.value, version)


def test_versions_choose_places_ranges_and_defaults() -> None:
    knob = Knob(
        name="x",
        summary="",
        documentation="",
        places=(
            KnobLocation(path="/sys/new", since="5.13"),
            KnobLocation(path="/proc/sys/old", until="5.12"),
        ),
        defaults=(Default(since="6.1", value="1", config="CONFIG_A=y"), Default(value="2")),
        allowed=(Allowed(since="6.0", maximum=9), Allowed(maximum=5)),
    )
    assert [place.path for place in knob.places_in((5, 12))] == ["/proc/sys/old"]
    assert [place.path for place in knob.places_in((5, 13))] == ["/sys/new"]
    assert (knob.allowed_in((5, 19)).maximum, knob.allowed_in((7, 2)).maximum) == (5, 9)
    for version, options, value in (((6, 1), {"CONFIG_A": "y"}, "1"), ((6, 1), {"CONFIG_A": "m"}, "2")):
        default = knob.default_in(version, options)
        assert default is not None
        assert default.value == value
    assert version_of("6.12.117+deb13-cloud-amd64") == (6, 12)


def test_instances_are_put_in_and_taken_out_again() -> None:
    template = "/sys/class/net/{interface}/queues/{queue}/rps_cpus"
    path = filled(template, "eth0/rx-0")
    assert path == "/sys/class/net/eth0/queues/rx-0/rps_cpus"
    assert catalogue.instance_at(template, path) == "eth0/rx-0"
    assert catalogue.instance_at(template, "/sys/class/net/eth0/mtu") == ""
    knob = catalogue.knob_at("/sys/fs/cgroup/user.slice/user-0.slice/cpu.weight")
    assert knob is not None
    assert knob.name == "cpu.weight"


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("net.ipv4.conf.eth0/1.forwarding", "/proc/sys/net/ipv4/conf/eth0.1/forwarding"),
        ("net/ipv4/conf/eth0.1/forwarding", "/proc/sys/net/ipv4/conf/eth0.1/forwarding"),
        ("/sys/kernel/x", "/sys/kernel/x"),
    ],
)
def test_sysctls_and_paths_that_no_file_lists_can_be_named(name: str, path: str) -> None:
    assert reference(name).path == path


@pytest.mark.parametrize(
    ("asked", "now", "same"),
    [
        ("4096  16384", "4096\t16384", True),
        ("madvise", "always [madvise] never", True),
        ("never", "always [madvise] never", False),
        ("1", "Y", True),
        ("0", "false", True),
        ("0x10", "16", True),
        ("010", "10", True),
        ("128", "127", False),
        ("max 100000", "max 100000", True),
    ],
)
def test_what_was_asked_for_is_recognised(asked: str, now: str, same: bool) -> None:
    assert form_of("/sys/x").shows(asked, now) is same


def test_a_disks_line_is_found_among_others() -> None:
    form = form_of("/sys/fs/cgroup/a/io.max")
    now = "8:16 rbps=5 wbps=max riops=max wiops=max\n8:0 rbps=max wbps=max riops=max wiops=120"
    assert form.shows("8:0 wiops=120", now)
    assert not form.shows("8:16 wiops=120", now)
    assert form.undoing(now, "8:16 wiops=120") == now.splitlines()[0]
    assert form.undoing("", "8:0 wiops=120") == "8:0 rbps=max wbps=max riops=max wiops=max"
    assert chosen("a [b] c") == "b"


def test_a_broken_plugin_warns_and_another_packages_knobs_are_added(monkeypatch: pytest.MonkeyPatch) -> None:
    entries = [
        EntryPoint("broken", "no_such_package:KNOBS", "ktrial.knobs"),
        EntryPoint("not_knobs", "ktrial.knobs.catalogue:subsystems", "ktrial.knobs"),
        EntryPoint("other", "tests.unit.knobs.test_knobs_catalogue:OTHER", "ktrial.knobs"),
    ]
    monkeypatch.setattr(plugin_discovery, "entry_points", lambda group: entries)
    catalogue.installed.cache_clear()
    try:
        knobs, warnings = catalogue.installed()
    finally:
        catalogue.installed.cache_clear()
    assert knobs["other.knob"].subsystem == "other"
    assert len(knobs) == len(KNOBS) + 1
    assert [warning.text.split(" is broken")[0] for warning in warnings] == [
        "the knobs broken (no_such_package:KNOBS)",
        "the knobs not_knobs (ktrial.knobs.catalogue:subsystems)",
    ]


OTHER = (
    Knob(
        name="other.knob",
        summary="nothing",
        kind=KnobKind.TEXT,
        places=(KnobLocation(path="/sys/other"),),
        documentation="Documentation/other.rst",
    ),
)
