"""Settings: where they are, and what counts as taken."""

import pytest
from tests.support.scripted import refused

from ktrial.experiment.manipulation import SettingRefused, TreatmentSetting, read_back, settings_of
from ktrial.knobs.catalogue import lenient_reference
from ktrial.knobs.values import same
from ktrial.model.design import Factor, FactorKind, Treatment, level_text
from ktrial.model.study import Study
from ktrial.studyfile.references import resolved
from ktrial.target import StepResult


def setting(name: str, value: str, release: str = "") -> TreatmentSetting:
    knob = lenient_reference(name)
    return TreatmentSetting(knob, value, knob.path_in(release))


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("vm.swappiness", "/proc/sys/vm/swappiness"),
        ("vm/swappiness", "/proc/sys/vm/swappiness"),
        ("kernel.sched_rt_runtime_us", "/proc/sys/kernel/sched_rt_runtime_us"),
        ("net.ipv4.conf.eth0/1.mtu", "/proc/sys/net/ipv4/conf/eth0.1/mtu"),
        ("net/ipv4/conf/eth0.1/mtu", "/proc/sys/net/ipv4/conf/eth0.1/mtu"),
        ("/sys/kernel/debug/sched/base_slice_ns", "/sys/kernel/debug/sched/base_slice_ns"),
        ("/proc/sys/vm/swappiness", "/proc/sys/vm/swappiness"),
    ],
)
def test_a_settings_name_leads_to_its_file_as_sysctl_has_it(name: str, path: str) -> None:
    assert lenient_reference(name).path_in() == path


@pytest.mark.parametrize(
    ("level", "text"),
    [(60, "60"), (-1, "-1"), (3e6, "3000000"), (0.5, "0.5"), (1e-7, "0.0000001"), ("madvise", "madvise")],
)
def test_a_level_is_written_without_exponent(level: int | float | str, text: str) -> None:
    assert level_text(level) == text


@pytest.mark.parametrize(
    ("asked", "now", "taken"),
    [
        ("60", "60\n", True),
        ("60", "0x3c\n", True),
        ("60", "61\n", False),
        ("madvise", "always [madvise] never\n", True),
        ("never", "always [madvise] never\n", False),
        ("4096 131072 6291456", "4096\t131072\t6291456\n", True),
        ("4096 131072", "4096\t131072\t6291456\n", False),
        ("1", "Y\n", True),
        ("N", "0\n", True),
        ("N", "Y\n", False),
        ("007", "7\n", True),
        ("mq-deadline", "none [mq-deadline]\n", True),
        ("", "\n", True),
        ("x", "", False),
    ],
)
def test_what_is_read_back_is_compared_as_the_kernel_means_it(asked: str, now: str, taken: bool) -> None:
    assert same(asked, now) is taken


@pytest.mark.parametrize(
    ("name", "release", "path"),
    [
        ("kernel.sched_latency_ns", "5.10.0-46-cloud-amd64", "/proc/sys/kernel/sched_latency_ns"),
        ("sched_latency_ns", "6.1.0-56-cloud-amd64", "/sys/kernel/debug/sched/latency_ns"),
        ("sched_latency_ns", "6.12.1", "/sys/kernel/debug/sched/latency_ns"),
        ("queue/read_ahead_kb@vda", "6.12.1", "/sys/block/vda/queue/read_ahead_kb"),
        ("net.core.no_such_thing", "6.12.1", "/proc/sys/net/core/no_such_thing"),
    ],
)
def test_a_knob_is_where_its_kernel_keeps_it(name: str, release: str, path: str) -> None:
    assert setting(name, "1", release).step.path == path


def test_a_file_that_shows_more_than_the_value_shows_the_value() -> None:
    word = setting("sched_features", "NO_RUN_TO_PARITY", "6.12.1")
    result = StepResult(step=0, do="write", after="PLACE_LAG NO_RUN_TO_PARITY DELAY_ZERO")
    assert read_back((word,), (result,)) == {"sched_features": result.after}


def test_a_treatments_settings_come_in_the_order_of_the_factors() -> None:
    factors = (
        Factor(name="kernel", kind=FactorKind.KERNEL, levels=("a",), baseline="a"),
        Factor(name="swap", kind=FactorKind.SETTING, levels=(0, 60), baseline=60, target="vm.swappiness"),
        Factor(name="thp", kind=FactorKind.SETTING, levels=("never",), baseline="never", target="/sys/thp"),
    )
    treatment = Treatment(levels={"kernel": "a", "swap": 0, "thp": "never"})
    study = resolved(Study(name="s", factors=factors, workloads=()))
    assert settings_of(study, treatment) == (setting("vm.swappiness", "0"), setting("/sys/thp", "never"))


SWAP = setting("vm.swappiness", "500")


@pytest.mark.parametrize(
    ("result", "reason"),
    [
        (
            refused("EINVAL", "Invalid argument"),
            "vm.swappiness = 500 was refused: EINVAL: Invalid argument",
        ),
        (
            StepResult(step=0, do="write", before="60\n", after="200\n"),
            "vm.swappiness = 500 was asked for, the kernel made it 200",
        ),
        (StepResult(step=7, do="write"), "vm.swappiness was never written"),
    ],
)
def test_a_setting_that_was_not_taken_says_what_the_kernel_answered(result: StepResult, reason: str) -> None:
    with pytest.raises(SettingRefused) as caught:
        read_back((SWAP,), (result,))
    assert str(caught.value) == reason


def test_settings_that_were_taken_are_given_as_read_back() -> None:
    result = StepResult(step=0, do="write", before="60\n", after="500\n")
    assert read_back((SWAP,), (result,)) == {"vm.swappiness": "500"}
