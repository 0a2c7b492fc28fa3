"""What differs between two treatments: what can be taken back, where, and by which value."""

import pytest
from tests.support.making import a_study
from tests.support.profiles import a_profile

from ktrial.analysis.attribution import proof
from ktrial.analysis.attribution.decomposition import explain
from ktrial.analysis.attribution.proof import candidates
from ktrial.model.attribution import (
    Attribution,
    Candidate,
    CauseKind,
    Differences,
    OptionDifference,
    ValueDifference,
)
from ktrial.model.design import Factor, FactorKind, Treatment
from ktrial.model.study import Disk, MachineSettings, Study

KERNELS = ("debian:6.12", "debian:7.2")
FEATURES = "/sys/kernel/debug/sched/features"
STUDY = a_study(kernels=KERNELS, workloads=("fork",))


def why(
    *values: ValueDifference, options: tuple[OptionDifference, ...] = (), function: str = "enqueue_task_fair"
) -> Attribution:
    """A difference that is all of one function's subsystem."""
    before, after = (a_profile({(function, ""): count}) for count in (1000, 3000))
    explanation = explain(before, after)
    differences = Differences(values=values, options=options)
    return Attribution(before=before, after=after, explanation=explanation, differences=differences)


def candidates_by_name(
    attribution: Attribution, study: Study = STUDY, **modules: tuple[str, ...]
) -> dict[str, Candidate]:
    before, after = (Treatment(levels={"kernel": name}) for name in KERNELS)
    modules_ = (modules.get("old", ()), modules.get("new", ()))
    return {
        candidate.name: candidate
        for candidate in candidates(study, before, after, attribution, modules_).ranked
    }


def differing(
    path: str, before: str | None, after: str | None, subsystem: str = "scheduler"
) -> ValueDifference:
    return ValueDifference(path=path, before=before, after=after, subsystem=subsystem)


def test_each_feature_of_the_scheduler_that_differs_is_one_candidate() -> None:
    words = "NO_HRTICK PLACE_LAG OLD_ONE NO_GONE", "HRTICK PLACE_LAG NEW_ONE NO_FRESH"
    reported = candidates_by_name(why(differing(FEATURES, *words)))
    assert {name: (candidate.on_to, candidate.on_from) for name, candidate in reported.items()} == {
        "HRTICK": ("NO_HRTICK", "HRTICK"),
        "NEW_ONE": ("NO_NEW_ONE", None),
        "OLD_ONE": (None, "NO_OLD_ONE"),
    }
    assert all(candidate.kind is CauseKind.FEATURE for candidate in reported.values())


def test_a_setting_of_a_subsystem_that_makes_no_difference_is_none() -> None:
    reported = candidates_by_name(why(differing("/proc/sys/net/core/rmem_max", "1", "2", "network")))
    assert not reported
    assert candidates_by_name(why(differing("/proc/sys/kernel/sched_rt_runtime_us", "1", "2"))).keys() == {
        "kernel.sched_rt_runtime_us"
    }


def test_a_setting_of_a_disk_needs_a_disk() -> None:
    setting = differing("/sys/block/nullb1/queue/read_ahead_kb", "128", "8192")
    assert not candidates_by_name(why(setting))
    disk = MachineSettings(disk=Disk(rotational=True))
    (reported,) = candidates_by_name(
        why(setting), a_study(kernels=KERNELS, workloads=("fork",), machine=disk)
    ).values()
    assert (reported.on_to, reported.on_from) == ("128", "8192")


@pytest.mark.parametrize(
    ("value", "off"),
    [("0x0007", "0"), ("Y", "N"), ("always [madvise] never", "never"), ("0", None), ("[never] always", None)],
)
def test_a_switch_that_one_kernel_has_is_switched_off_there(value: str, off: str | None) -> None:
    path = "/sys/kernel/mm/lru_gen/enabled"
    reported = candidates_by_name(why(differing(path, None, value)))
    assert {candidate.on_to for candidate in reported.values()} == ({off} if off else set())
    assert all(candidate.on_from is None for candidate in reported.values())


def test_a_number_that_one_kernel_has_cannot_be_taken_back() -> None:
    assert not candidates_by_name(why(differing("/proc/sys/kernel/sched_util_clamp_min", None, "1024")))


def test_the_choice_in_force_is_what_is_given() -> None:
    path = "/sys/kernel/debug/sched/preempt"
    (reported,) = candidates_by_name(why(differing(path, "none (voluntary) full", "full (lazy)"))).values()
    assert (reported.on_to, reported.on_from) == ("voluntary", "lazy")


def test_a_module_s_parameter_is_given_at_boot() -> None:
    path = "/sys/module/rcutree/parameters/rcu_normal_wake_from_gp"
    (reported,) = candidates_by_name(why(differing(path, "0", "1"))).values()
    assert (reported.name, reported.kind, reported.on_to) == (
        "rcutree.rcu_normal_wake_from_gp",
        CauseKind.BOOT,
        "0",
    )


def test_an_option_that_a_boot_parameter_overrides_is_switched_off_where_it_is_on() -> None:
    options = (
        OptionDifference(option="CONFIG_PSI", before=None, after="y", owners=("scheduler",)),
        OptionDifference(option="CONFIG_LSM", before="yama", after="yama,bpf", owners=("security",)),
        OptionDifference(option="CONFIG_AUDIT", before="y", after=None, owners=()),
    )
    reported = candidates_by_name(why(options=options))
    assert (reported["psi=0"].target, reported["psi=0"].on_to, reported["psi=0"].on_from) == (
        "psi",
        "0",
        None,
    )
    assert (reported["lsm"].on_to, reported["lsm"].on_from) == ("yama", "yama,bpf")
    assert len(reported) == 2, "what no function at hand belongs to is not tried"


def test_a_module_that_nobody_loads_is_loaded_where_it_is_one() -> None:
    option = OptionDifference(
        option="CONFIG_CRYPTO_CRC32C_INTEL", before="m", after=None, owners=("cryptography",)
    )
    (reported,) = candidates_by_name(why(options=(option,)), old=("crc32c_intel", "crc32c"), new=()).values()
    assert (reported.kind, reported.on_from, reported.on_to) == (CauseKind.MODULE, "crc32c_intel", None)


def test_a_mitigation_that_one_kernel_has_is_switched_off_there() -> None:
    path = f"{proof.VULNERABILITIES}retbleed"
    (reported,) = candidates_by_name(
        why(differing(path, None, "Mitigation: untrained return thunk"))
    ).values()
    assert (reported.name, reported.target, reported.on_to, reported.on_from) == (
        "retbleed=off",
        "retbleed",
        "off",
        None,
    )
    assert not candidates_by_name(why(differing(path, "Mitigation: IBRS", "Mitigation: Enhanced IBRS")))


def test_of_several_factors_each_is_a_candidate_and_of_one_none() -> None:
    boot = Factor(name="psi", kind=FactorKind.BOOT, levels=("", "psi=0"), baseline="", target="psi")
    study = a_study(kernels=KERNELS, workloads=("fork",), factors=(boot,))
    levels = [{"kernel": KERNELS[0], "psi": ""}, {"kernel": KERNELS[1], "psi": "psi=0"}]
    before, after = (Treatment(levels=level) for level in levels)
    reported = candidates(study, before, after, why()).ranked
    assert [(candidate.name, candidate.kind) for candidate in reported] == [
        ("kernel", CauseKind.LEVEL),
        ("psi", CauseKind.LEVEL),
    ]
    assert not candidates_by_name(why())


def test_options_of_kernels_that_are_built_are_built_anew() -> None:
    from ktrial.model.kernel import Build

    builds = {name: Build(source=f"debian:linux-source-{name[-4:].strip(':')}") for name in KERNELS}
    option = OptionDifference(option="CONFIG_SCHED_AUTOGROUP", before=None, after="y", owners=("scheduler",))
    study = a_study(kernels=KERNELS, workloads=("fork",), builds=builds)
    (reported,) = candidates_by_name(why(options=(option,)), study).values()
    assert (reported.kind, reported.on_to, reported.on_from) == (CauseKind.OPTION, "n", "y")
