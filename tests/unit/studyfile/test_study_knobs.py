"""Factors of a study that are knobs: recognised by name, written where each kernel keeps them."""

from pathlib import Path

import pytest
from tests.support.command_line import KNOWN
from tests.support.kernel_images import bzimage, with_checksum

from ktrial.experiment.manipulation import settings_of
from ktrial.model.design import FactorKind, Treatment
from ktrial.model.study import Study
from ktrial.studyfile.errors import StudyError
from ktrial.studyfile.reader import load

STUDY = """\
workloads = ["fork"]
[machine]
kernel = "{kernel}"
[factors."{name}"]
levels = {levels}
"""


@pytest.mark.parametrize(
    ("name", "levels", "kind"),
    [
        ("base_slice_ns", [1, 2], FactorKind.SETTING),
        ("swappiness", [1, 2], FactorKind.SETTING),
        ("queue/read_ahead_kb@vda", [1, 2], FactorKind.SETTING),
        ("transparent_hugepage/enabled", ["always", "never"], FactorKind.SETTING),
        ("init_on_alloc", [0, 1], FactorKind.BOOT),
        ("mitigations", ["off", "auto"], FactorKind.BOOT),
    ],
)
def test_a_knob_needs_no_kind(tmp_path: Path, name: str, levels: list[object], kind: FactorKind) -> None:
    (tmp_path / "study.toml").write_text(STUDY.format(kernel="debian:6.12", name=name, levels=levels))
    (factor,) = load(tmp_path / "study.toml", KNOWN).factors
    assert (factor.kind, factor.target) == (kind, name)


def test_one_study_writes_to_the_place_that_each_kernel_has(tmp_path: Path) -> None:
    (tmp_path / "study.toml").write_text(
        STUDY.format(kernel="debian:6.1", name="sched_migration_cost_ns", levels=[1, 2])
    )
    study = load(tmp_path / "study.toml", KNOWN)
    treatment = Treatment(levels={"sched_migration_cost_ns": 2})
    places = [settings_of(study, treatment, release)[0].step.path for release in ("5.10.0-46", "6.12.1")]
    assert places == [
        "/proc/sys/kernel/sched_migration_cost_ns",
        "/sys/kernel/debug/sched/migration_cost_ns",
    ]


OWN = "a file"
"""A kernel in a file, whose version nobody knows before it is booted."""


def refusal(tmp_path: Path, factors: str, kernels: tuple[str, ...] = ("debian:6.1",), rest: str = "") -> str:
    """What is said of the study, without the file's name; empty where it is read."""
    image = tmp_path / "bzImage"
    image.write_bytes(with_checksum(bzimage(b"payload")))
    kernels = tuple(f"path:{image}" if name == OWN else name for name in kernels)
    booted = f"[factors.kernel]\nlevels = {list(kernels)}\n"
    if len(kernels) == 1:
        booted = f'[machine]\nkernel = "{kernels[0]}"\n'
    path = tmp_path / "study.toml"
    path.write_text(f'workloads = ["fork"]\n{rest}{booted}{factors}')
    try:
        load(path, KNOWN)
    except StudyError as error:
        return error.message.removeprefix(f"{path}:")
    return ""


@pytest.mark.parametrize(
    ("factor", "kernels", "said"),
    [
        (
            '[factors."vm.swappiness"]\nlevels = [60, 500]',
            ("debian:6.1",),
            '5: factors."vm.swappiness".levels[1]: found 500: it is too large; allowed: 0 to 200 (Linux 6.1)',
        ),
        (
            '[factors."vm.swappiness"]\nlevels = [60, 500]',
            ("debian:6.1", "debian:6.12"),
            '5: factors."vm.swappiness".levels[1]: found 500: it is too large; '
            "allowed: 0 to 200 (Linux 6.1, 6.12)",
        ),
        (
            '[factors."vm.swappiness"]\nlevels = [60, 150]',
            ("debian:5.4", "debian:6.1"),
            '5: factors."vm.swappiness".levels[1]: found 150: it is too large for debian:5.4; '
            "allowed: 0 to 100 (Linux 5.4)",
        ),
        (
            '[factors."vm.swappiness"]\nlevels = [60, 500]',
            ("debian:5.4", "debian:6.1"),
            '5: factors."vm.swappiness".levels[1]: found 500: it is too large; '
            "allowed: 0 to 100 (Linux 5.4); 0 to 200 (Linux 6.1)",
        ),
        (
            '[factors."vm.swappiness"]\nlevels = [60, 500]',
            (OWN,),
            '5: factors."vm.swappiness".levels[1]: found 500: it is too large; '
            "allowed: 0 to 200 (whatever the version)",
        ),
        (
            '[factors."vm.swappiness"]\nlevels = [60, 0.5]',
            ("debian:6.1",),
            '5: factors."vm.swappiness".levels[1]: found 0.5: it is not a whole number; '
            "allowed: 0 to 200 (Linux 6.1)",
        ),
        (
            '[factors.thp]\ntarget = "/sys/kernel/mm/transparent_hugepage/enabled"\n'
            'levels = ["always", "sometimes"]',
            ("debian:6.1",),
            '6: factors.thp.levels[1]: found "sometimes": it is not one of the choices; '
            "allowed: always, madvise or never (Linux 6.1)",
        ),
        (
            '[factors."kernel.numa_balancing"]\nlevels = [0, 2]',
            ("debian:5.10", "debian:6.1"),
            '5: factors."kernel.numa_balancing".levels[1]: found 2: it is too large for debian:5.10; '
            "allowed: 0 to 1 (Linux 5.10)",
        ),
        (
            "[factors.base_slice_ns]\nlevels = [3000000, 700000]",
            ("debian:5.10", "debian:6.1"),
            "4: factors.base_slice_ns: Knob base_slice_ns is not in this kernel (5.10, 6.1): kernels have it "
            "since 6.6; compare kernels that have it",
        ),
        (
            "[factors.sched_min_granularity_ns]\nlevels = [1, 2]",
            ("debian:6.12",),
            "4: factors.sched_min_granularity_ns: Knob sched_min_granularity_ns is gone: the last kernel "
            "with it was 6.5, this is 6.12; nearest to it is base_slice_ns",
        ),
        (
            '[factors.preempt]\nkind = "boot"\nlevels = ["full", "lazy"]',
            ("debian:6.1", "debian:6.18"),
            '6: factors.preempt.levels[1]: found "lazy": it is not one of the choices for debian:6.1; '
            "allowed: none, voluntary or full (Linux 6.1)",
        ),
        (
            '[factors.mitigations]\nlevels = ["auto", "of"]',
            ("debian:6.1",),
            '5: factors.mitigations.levels[1]: found "of": it is not one of the choices; '
            "allowed: auto, auto,nosmt or off (Linux 6.1)",
        ),
        (
            '[factors."/sys/../etc/passwd"]\nlevels = ["a", "b"]',
            ("debian:6.1",),
            '4: factors."/sys/../etc/passwd": "/sys/../etc/passwd" cannot name a setting: a path '
            "goes straight down",
        ),
        (
            '[factors."/etc/passwd"]\nlevels = ["a", "b"]',
            ("debian:6.1",),
            '4: factors."/etc/passwd": "/etc/passwd" cannot name a setting: a knob\'s file is below',
        ),
        (
            '[factors."queue/nr_requests"]\nlevels = [64, 128]',
            ("debian:6.1",),
            '4: factors."queue/nr_requests": there is one queue/nr_requests for each disk, '
            'and a factor is one of them: "queue/nr_requests@NAME"',
        ),
        (
            '[factors.mitigations]\nkind = "setting"\nlevels = ["auto", "off"]',
            ("debian:6.1",),
            '4: factors.mitigations: "mitigations" is a parameter that kernels are booted with: '
            'kind = "boot"',
        ),
    ],
)
def test_what_no_kernel_of_the_study_takes_is_refused_when_it_is_read(
    tmp_path: Path, factor: str, kernels: tuple[str, ...], said: str
) -> None:
    assert refusal(tmp_path, factor, kernels).startswith(said)


@pytest.mark.parametrize(
    ("factor", "kernels"),
    [
        ('[factors."vm.swappiness"]\nlevels = [0, 200]', ("debian:6.1", "debian:6.12")),
        ('[factors."vm.swappiness"]\nlevels = [0, 150]', (OWN,)),
        ('[factors."vm.swappiness"]\nlevels = ["0", "0x20"]', ("debian:6.1",)),
        ('[factors."vm.no_such_thing"]\nlevels = [0, 150]', ("debian:6.1",)),
        ('[factors.unheard_of]\nkind = "setting"\nlevels = ["a", "b"]', ("debian:6.1",)),
        ('[factors."/sys/module/brd/parameters/rd_nr"]\nlevels = ["a", "b"]', ("debian:6.1",)),
        ("[factors.base_slice_ns]\nlevels = [3000000, 700000]", ("debian:5.10", "debian:6.12")),
        ("[factors.base_slice_ns]\nlevels = [3000000, 700000]", (OWN,)),
        ('[factors."/sys/kernel/debug/sched/base_slice_ns"]\nlevels = [1, 2]', ("debian:6.1",)),
        ('[factors.nohz]\nlevels = ["on", "0"]', ("debian:6.1",)),
        ('[factors.mitigations]\nlevels = ["", "auto;no_user_kernel"]', ("debian:6.18",)),
        ('[factors.threadirqs]\nlevels = ["", "threadirqs"]', ("debian:6.1",)),
        ('[factors.idle]\nkind = "boot"\nlevels = ["", "poll"]', ("debian:6.1",)),
        ('[factors.norandmaps]\nkind = "boot"\nlevels = ["", "norandmaps"]', ("debian:6.1",)),
        ('[factors.preempt]\nkind = "boot"\nlevels = ["full", "lazy"]', ("debian:6.18",)),
    ],
)
def test_what_a_kernel_may_take_is_left_to_it(tmp_path: Path, factor: str, kernels: tuple[str, ...]) -> None:
    assert refusal(tmp_path, factor, kernels) == ""


def test_a_value_that_only_another_kernel_is_booted_with_is_no_mistake(tmp_path: Path) -> None:
    """One factor at a time: what is not the baseline's goes with the first kernel alone."""
    factor = '[factors."vm.swappiness"]\nlevels = [60, 150]'
    one_at_a_time = 'design = "one-factor-at-a-time"\n'
    assert refusal(tmp_path, factor, ("debian:6.1", "debian:5.4"), one_at_a_time) == ""
    assert "too large for debian:5.4" in refusal(tmp_path, factor, ("debian:6.1", "debian:5.4"))


@pytest.mark.parametrize(
    ("knob", "said"),
    [
        ("vm.swappiness=10,500", 'found "500": it is too large; allowed: 0 to 200 (Linux 6.1)'),
        ("vm.swappiness=0..300", 'found "300": it is too large; allowed: 0 to 200 (Linux 6.1)'),
        ("vm.swappiness=10..200", ""),
        ("vm.dirty_ratio", ""),
    ],
)
def test_values_to_search_are_in_the_knobs_range(tmp_path: Path, knob: str, said: str) -> None:
    table = f'[search]\nknobs = ["vm.dirty_ratio", "{knob}"]\nminimise = ["instructions"]\n'
    expected = f"5: search.knobs[1]: {said}" if said else ""
    assert refusal(tmp_path, table) == expected


def test_references_are_made_once_and_not_stored(tmp_path: Path) -> None:
    path = tmp_path / "study.toml"
    path.write_text(STUDY.format(kernel="debian:6.1", name="swappiness", levels=[1, 2]))
    study = load(path, KNOWN)
    assert study.references.knobs["swappiness"].path_in("6.1") == "/proc/sys/vm/swappiness"
    assert study.references.kernels["debian:6.1"].name == "debian:6.1:cloud"
    assert study.references.kernels["debian:6.1"].version == (6, 1)
    assert "references" not in study.model_dump()
    assert Study.model_validate_json(study.model_dump_json()) == study
