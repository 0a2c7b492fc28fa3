"""Which differences between kernels a study's factors declare, and which are confounds or worth a note."""

from pathlib import Path

import pytest
from tests.support import making
from tests.support.kconfig_trees import SLAB, SLUB, known, some_rules
from tests.support.making import a_study, planned
from tests.unit.analysis.test_kernel_difference import a_kernel, a_patch, built

from ktrial.analysis.kernel_confounds import Confounding, KernelStep, confounding_of, with_kernels
from ktrial.analysis.kernel_diff import difference_of
from ktrial.analysis.result import load_record, result
from ktrial.kernels.kernel_difference import Rules, changed_options
from ktrial.model.comparison import Scatter, Variability, Verdict
from ktrial.model.design import Factor, FactorKind, Treatment
from ktrial.model.kernel import Build, BuildChange, Kernel, KernelDifference, Origin, Respect
from ktrial.model.study import MachineSettings, Study, kernel_name
from ktrial.model.trial import Provenance
from ktrial.model.warnings import WarningKind
from ktrial.model.workload import Mode
from ktrial.report import study_html, study_markdown
from ktrial.store.store import Store, open_store

FOUR = "version, 1 patch, 3 options and compiler flags"


@pytest.fixture(scope="module")
def rules(tmp_path_factory: pytest.TempPathFactory) -> Rules:
    return some_rules(tmp_path_factory.mktemp("linux"))


def step(
    study: Study, before: Kernel, after: Kernel, rules: Rules | None = None, **levels: object
) -> KernelStep:
    """From the baseline to the treatment with these levels."""
    difference = difference_of(before, after)
    if rules and before.config and after.config:
        sides = (known(config.read_text(), rules) for config in (before.config, after.config))
        options = changed_options(*sides, same_source=True)
        respects = tuple(config for config in difference.respects if config is not Respect.OPTIONS)
        plain = difference.model_copy(update={"options": options, "folded": True})
        of_options = (Respect.OPTIONS,) if plain.decided else ()
        difference = plain.model_copy(update={"respects": (*respects, *of_options)})
    baseline = Treatment(levels={factor.name: factor.baseline for factor in study.factors})
    treatment = Treatment(levels=baseline.levels | levels)
    return KernelStep(baseline, treatment, before.origin.build, after.origin.build, difference)


def a_build_study(*factors: Factor, **builds: Build) -> Study:
    plain = making.a_study().model_dump()
    return Study.model_validate(
        plain | {"factors": factors, "builds": builds, "machine": MachineSettings(kernel="base")}
    )


def a_factor(kind: FactorKind, name: str, **changes: BuildChange) -> Factor:
    levels = ("", *changes)
    return Factor(name=name, kind=kind, levels=levels, baseline="", changes=dict(changes))


SLAB_FACTOR = Factor(
    name="allocator",
    kind=FactorKind.KCONFIG,
    levels=("SLUB=y", "SLAB=y"),
    baseline="SLUB=y",
    changes={
        "SLUB=y": BuildChange(options={"CONFIG_SLUB": "y"}),
        "SLAB=y": BuildChange(options={"CONFIG_SLAB": "y"}),
    },
)


def test_an_option_declares_itself_and_what_follows(tmp_path: Path, rules: Rules) -> None:
    study = a_build_study(SLAB_FACTOR, base=Build(source="/linux"))
    kernel, kernel_after = built(tmp_path, "build:slub"), built(tmp_path, "build:slab", SLAB)
    assert (
        confounding_of(study, step(study, kernel, kernel_after, rules, allocator="SLAB=y")) == Confounding()
    )


def test_an_option_that_nobody_declared_is_a_confound_by_name(tmp_path: Path, rules: Rules) -> None:
    study = a_build_study(SLAB_FACTOR, base=Build(source="/linux"))
    kernel, kernel_after = (
        built(tmp_path, "build:slub"),
        built(tmp_path, "build:slab", SLAB + "CONFIG_SWAP=y\n"),
    )
    confounding = confounding_of(study, step(study, kernel, kernel_after, rules, allocator="SLAB=y"))
    assert confounding.confound == "the kernels also differ in 1 option (SWAP), which no factor declares"
    assert "a factor" in confounding.advice


def test_another_compiler_is_a_confound(tmp_path: Path, rules: Rules) -> None:
    study = a_build_study(SLAB_FACTOR, base=Build(source="/linux"))
    kernel = built(tmp_path, "build:slub")
    kernel_after = built(tmp_path, "build:slab", SLAB.replace("gcc 12", "gcc 13"))
    confounding = confounding_of(study, step(study, kernel, kernel_after, rules, allocator="SLAB=y"))
    assert confounding.confound.startswith("the kernels also differ in compiler (gcc 12 and gcc 13)")


def test_a_compiler_that_a_factor_chooses_is_declared(tmp_path: Path, rules: Rules) -> None:
    make = {"CC": "gcc-13"}
    factor = a_factor(FactorKind.COMPILER_FLAGS, "compiler", new=BuildChange(make=make))
    study = a_build_study(factor, base=Build(source="/linux"))
    kernel = built(tmp_path, "build:one")
    kernel_after = built(tmp_path, "build:other", SLUB.replace("gcc 12", "gcc 13"), make=make)
    assert confounding_of(study, step(study, kernel, kernel_after, rules, compiler="new")) == Confounding()


def test_flags_and_patches_declare_themselves_only(tmp_path: Path, rules: Rules) -> None:
    patch, make = a_patch(tmp_path, "p.patch"), {"KCFLAGS": "-O3"}
    flags = a_factor(FactorKind.COMPILER_FLAGS, "flags", O3=BuildChange(make=make))
    patches = a_factor(FactorKind.PATCH, "patch", p=BuildChange(patches=(patch,)))
    study = a_build_study(flags, patches, base=Build(source="/linux"))
    kernel = built(tmp_path, "build:one")
    both = built(tmp_path, "build:both", patches=[patch], make=make)
    assert confounding_of(study, step(study, kernel, both, rules, flags="O3", patch="p")) == Confounding()
    confounding = confounding_of(study, step(study, kernel, both, rules, flags="O3"))
    assert confounding.confound == "the kernels also differ in 1 patch, which no factor declares"
    confounding = confounding_of(study, step(study, kernel, both, rules, patch="p"))
    assert confounding.confound == "the kernels also differ in compiler flags, which no factor declares"


def four(tmp_path: Path) -> tuple[Study, Kernel, Kernel]:
    """The paper's two kernels: another version, a patch set, flags and configuration at once."""
    old = Build(source=str(tmp_path / "gone"))
    patch, make = a_patch(tmp_path, "muqss.patch"), {"KCFLAGS": "-O3"}
    new = Build(source=str(tmp_path / "newer"), options={"CONFIG_SLAB": "y"}, patches=(patch,), make=make)
    kernel = Factor(name="kernel", kind=FactorKind.KERNEL, levels=("arch", "muqss"), baseline="arch")
    study = a_build_study(kernel, arch=old, muqss=new)
    kernel_after = built(tmp_path, "build:b", SLAB, release="5.12.15", **new.model_dump())
    return study, built(tmp_path, "build:a", release="5.13.0"), kernel_after


def test_the_papers_four_respects_are_all_named(tmp_path: Path) -> None:
    study, kernel, kernel_after = four(tmp_path)
    confounding = confounding_of(study, step(study, kernel, kernel_after, kernel="muqss"))
    assert confounding.confound == f"the kernels differ in {FOUR} at once, and no factor tells them apart"
    assert "one thing differs at a time" in confounding.advice


@pytest.mark.parametrize("respect", ["source", "options", "patches", "make"])
def test_kernels_that_differ_in_one_respect_declare_it(respect: str, tmp_path: Path, rules: Rules) -> None:
    study, _, _ = four(tmp_path)
    old, new = study.builds["arch"], study.builds["muqss"]
    only = old.model_copy(update={respect: getattr(new, respect)})
    study = study.model_copy(update={"builds": {"arch": old, "muqss": only}})
    config = SLAB if respect == "options" else SLUB
    release = "6.2.0" if respect == "source" else "6.1.7"
    kernel_after = built(tmp_path, "build:b", config, release=release, **only.model_dump())
    confounding = confounding_of(
        study, step(study, built(tmp_path, "build:a"), kernel_after, rules, kernel="muqss")
    )
    assert confounding.confound == ""


def test_distribution_kernels_of_two_versions_get_a_note_in_words(tmp_path: Path) -> None:
    study = a_study(kernels=("debian:6.1", "debian:6.12"))
    kernel, kernel_after = (
        a_kernel(tmp_path, name, text, origin=Origin(provider="debian", source=name, version=version))
        for name, text, version in (("debian:6.1", SLUB, "6.1.7-1"), ("debian:6.12", SLAB, "6.12.1-1"))
    )
    confounding = confounding_of(study, step(study, kernel, kernel_after, kernel="debian:6.12"))
    assert confounding.confound == ""
    assert confounding.note == (
        "these kernels differ in version and 3 options at once: what is measured is the whole step from "
        "debian:6.1 to debian:6.12, not one of them"
    )


def test_the_same_kernel_needs_no_word(tmp_path: Path) -> None:
    study = a_build_study(SLAB_FACTOR, base=Build(source="/linux"))
    kernel = built(tmp_path, "build:slub")
    assert confounding_of(study, step(study, kernel, kernel, allocator="SLAB=y")) == Confounding()


def stored(store: Store, study: Study, before: Kernel, after: Kernel, difference: KernelDifference) -> int:
    number = store.study(study)
    for order, (level, kernel, value) in enumerate((("arch", before, 1000.0), ("muqss", after, 700.0))):
        treatment = Treatment(levels={"kernel": level})
        assert kernel_name(study, treatment).startswith("build:")
        plan = planned(order=order).model_copy(update={"treatment": treatment})
        provenance = Provenance(kernel_digest=kernel.digest, machine="exact")
        store.add_trial(number, making.a_trial(plan, {"fork": value, "pipe": value}, provenance=provenance))
    store.add_kernel_difference(number, difference)
    return number


def test_a_confound_reaches_the_verdict_the_answer_and_the_reports(tmp_path: Path) -> None:
    study, kernel, kernel_after = four(tmp_path)
    study = study.model_copy(update={"perturbations": 1})
    difference = difference_of(kernel, kernel_after)
    with open_store(tmp_path / "x.db") as store:
        complete = load_record(store, stored(store, study, kernel, kernel_after, difference))
    assert complete.kernels == (difference,)
    assert {comparison.verdict for comparison in complete.result.comparisons} == {Verdict.INCONCLUSIVE}
    assert {comparison.ratio for comparison in complete.result.comparisons} == {0.7}, (
        "what was measured stays"
    )
    assert all(FOUR in comparison.reason for comparison in complete.result.comparisons)
    assert FOUR in complete.result.answer
    (warning,) = [each for each in complete.result.warnings if each.kind is WarningKind.CONFOUND]
    assert FOUR in warning.text
    assert FOUR in study_markdown(complete)
    page = study_html(complete)
    assert FOUR in page
    assert "What differs between the kernels" in page
    assert "muqss.patch" in page


def test_what_scatters_is_still_said_where_kernels_differ(tmp_path: Path) -> None:
    study, kernel, kernel_after = four(tmp_path)
    study = study.model_copy(update={"perturbations": 1})
    difference = difference_of(kernel, kernel_after)
    with open_store(tmp_path / "x.db") as store:
        trials = store.trials(stored(store, study, kernel, kernel_after, difference))
    unsteady = Variability(
        workload="fork",
        metric="fork",
        unit="instructions",
        mode=Mode.EXACT_CLOCK,
        baseline="arch",
        treatment="muqss",
        scatter=Scatter.WIDER,
        baseline_spread=0.001,
        spread=0.052,
        trials=3,
        p=0.01,
    )
    plain = result(study, trials).model_copy(update={"variability": (unsteady,)})
    answer = with_kernels(study, trials, plain, (difference,)).answer
    assert FOUR in answer
    assert "fork (fork) scatters more with muqss: 5.2 %" in answer
