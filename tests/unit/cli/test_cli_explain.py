"""`ktrial explain` on profiles that were written down beforehand: of kernels, of results, of study files."""

import json
from pathlib import Path
from typing import Any

import pytest
import typer
from tests.support.command_line import STUDY, CommandLine
from tests.support.making import a_study, a_trial, keep_a_table, planned
from tests.support.profiles import a_profile
from tests.support.report_records import a_record, by_the_plugin
from tests.support.scripted import a_kernel, scripted_resources
from tests.support.stored_results import a_store, with_real_profiles

from ktrial.cli.app import app
from ktrial.cli.options.completion import treatment_names, workloads_of_study
from ktrial.experiment.jobs import Job
from ktrial.experiment.resources import Resources
from ktrial.kernels import Progress
from ktrial.machines.errors import MachineError, NoPluginHere
from ktrial.machines.fake import FakeMachine
from ktrial.model.attribution import Candidate, CauseKind, Proof, ProofSide, Status, Together, Tried
from ktrial.model.design import PlannedTrial
from ktrial.model.kernel import Kernel
from ktrial.model.machine import Boot
from ktrial.model.references import KernelRef
from ktrial.model.trial import CounterDelta, Outcome, Trial
from ktrial.model.warnings import DataWarning, WarningKind
from ktrial.store.store import open_store
from ktrial.target import Step, StepResult, Walk

OLD, NEW = "debian:6.1:cloud", "debian:6.12:cloud"
PROFILES = {
    OLD: a_profile(
        {("vma_link", ""): 3000, ("map", "ext4"): 500, ("kmem_cache_alloc", ""): 1000},
        kernel="debian:6.1",
        program=500,
    ),
    NEW: a_profile(
        {("mas_store", ""): 7000, ("map", "ext4"): 500, ("kmem_cache_alloc_noprof", ""): 1200},
        kernel="debian:6.12",
        program=500,
    ),
}
CONFIGS = {
    OLD: "CONFIG_SMP=y\nCONFIG_SLUB_CPU_PARTIAL=y\nCONFIG_NR_CPUS=64\nCONFIG_USB=m\n",
    NEW: "CONFIG_SMP=y\nCONFIG_PER_VMA_LOCK=y\nCONFIG_NR_CPUS=128\n",
}
SETTINGS = {
    OLD: {"/proc/sys/vm/swappiness": "60", "/sys/block/nullb0/queue/read_ahead_kb": "128"},
    NEW: {"/proc/sys/vm/swappiness": "60", "/sys/block/nullb0/queue/read_ahead_kb": "8192"},
}
FAULTS = {OLD: 100.0, NEW: 300.0}
BOTH = ("--kernel", "debian:6.1", "--kernel", "debian:6.12", "--workload", "fork")


class World:
    """The kernels, what they do, and where results are kept."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.store = directory / "store.db"
        self.counted: list[PlannedTrial] = []
        self.counting_fails: Trial | MachineError | None = None
        self.walked: list[Boot] = []
        self.profiles = PROFILES
        self.machine = FakeMachine(self._answer)

    def resources(self) -> Resources:
        real = scripted_resources()
        return Resources(self.obtain, real.modules, real.workload, real.files)

    def obtain(self, kernel: KernelRef, progress: Progress) -> Kernel:
        name = kernel.asked
        directory = self.directory / name.replace(":", "-")
        directory.mkdir(exist_ok=True)
        (directory / "config").write_text(CONFIGS.get(name, ""))
        return a_kernel(name, image=directory / "vmlinuz", config=directory / "config")

    def run_trial(self, machine: object, trial: PlannedTrial, jobs: tuple[Job, ...]) -> Trial:
        (job,) = jobs
        self.counted.append(trial)
        if isinstance(self.counting_fails, MachineError):
            raise self.counting_fails
        return self.counting_fails or self.trial(trial, job.boot.kernel.name, job.boot.parameters)

    def trial(self, trial: PlannedTrial, kernel: str, parameters: tuple[str, ...] = ()) -> Trial:
        profile = self.profiles.get(kernel, self.profiles[OLD]).model_copy(update={"parameters": parameters})
        faults = CounterDelta(workload="fork", name="vmstat.pgfault", delta=FAULTS.get(kernel, 100.0))
        values = {"fork": profile.region.instructions / profile.operations}
        return a_trial(trial, values, profiles=(profile,), counters=(faults,), provenance={})

    def kept(self, *kernels: str, profiles: bool = True, study: Any = None) -> int:
        """A study whose trials are in the store; its id."""
        study = study or a_study("upgrade", kernels=kernels, workloads=("fork",), perturbations=1)
        with open_store(str(self.store)) as store:
            number = store.study(study)
            for order, kernel in enumerate(kernels):
                trial = self.trial(planned(kernel, 0, order), kernel)
                store.add_trial(number, trial if profiles else trial.model_copy(update={"profiles": ()}))
        return number

    def _answer(self, boot: Boot, step: Step) -> StepResult:
        files = {}
        if isinstance(step, Walk):
            self.walked.append(boot)
            files = SETTINGS.get(boot.kernel.name, SETTINGS[OLD])
        return StepResult(step=0, do=step.do, files=files)


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> World:
    made = World(tmp_path)
    monkeypatch.setattr("ktrial.experiment.trial.run_trial", made.run_trial)
    monkeypatch.setattr("ktrial.experiment.explain.default_resources", made.resources)
    monkeypatch.setattr("ktrial.machines.find", lambda name: made.machine)
    monkeypatch.setenv("KTRIAL_STORE", str(made.store))
    return made


@pytest.fixture
def cli(world: World, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> CommandLine:
    monkeypatch.setenv("COLUMNS", "120")
    return CommandLine(monkeypatch, capsys)


def rows(text: str) -> list[list[str]]:
    return [line.split() for line in text.splitlines()]


def test_the_functions_of_the_difference_are_ranked_and_summed(cli: CommandLine) -> None:
    result = cli("explain", "-v", *BOTH)
    assert result.status == 0
    title, beneath = result.output.splitlines()[:2]
    assert title == f"fork: {OLD} → {NEW}: +84 % (one perturbation: no interval), instructions per operation"
    assert beneath.startswith("rows add up to +420, the mean under one perturbation;")
    table = rows(result.output)
    ranked = [row[0] for row in table if row and row[0] in {"mas_store", "vma_link", "kmem_cache_alloc"}]
    assert ranked[:3] == ["mas_store", "vma_link", "kmem_cache_alloc"]
    assert ["mas_store", "–", "700", "+700", "166.7"] in table
    assert ["vma_link", "300", "–", "−300", "−71.4"] in table
    assert ["kmem_cache_alloc", "→", "kmem_cache_alloc_noprof", "100", "120", "+20", "4.8"] in table
    assert ["the", "sum", "500", "920", "+420", "100.0"] in table
    assert ["maple", "tree", "+700", "166.7"] in table
    assert "The rows sum to +420 of +420; unexplained: 0." in result.output


def test_what_differs_around_the_functions_is_shown(cli: CommandLine) -> None:
    result = cli("explain", "-v", *BOTH)
    table = rows(result.output)
    assert f"kernel: {OLD} → {NEW}" in result.output
    assert ["maple", "tree", "+PER_VMA_LOCK"] in table
    assert [row[:4] for row in table if row[:2] == ["These", "are"]], "of how many options is told"
    assert ["slab", "−SLUB_CPU_PARTIAL"] in table
    assert "2 other options differ; --all shows them." in result.output
    assert ["/sys/block/nullb0/queue/read_ahead_kb", "128", "8192"] in table
    assert "vm.swappiness" not in result.output
    assert ["vmstat.pgfault", "10", "30"] in table
    assert "not compared" not in result.output


def test_all_shows_what_is_only_counted_otherwise(cli: CommandLine) -> None:
    result = cli("explain", *BOTH, "--all", "--top", 1)
    table = rows(result.output)
    assert ["NR_CPUS", "64", "→", "128"] in table
    assert ["−USB=m"] in table
    assert [*table[8][:3]] == ["0", "other", "rows"] or "map [ext4]" not in result.output
    assert "kmem_cache_alloc → kmem_cache_alloc_noprof" in result.output


def test_bytes_have_a_column_where_string_instructions_differ(
    cli: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    clears = a_profile({("clear_page_erms", ""): 3050}, string_bytes={("clear_page_erms", ""): 40_960})
    monkeypatch.setitem(PROFILES, NEW, clears)
    result = cli("explain", "-v", *BOTH)
    table = rows(result.output)
    assert ["clear_page_erms", "–", "305", "+305", "−156.4", "+4,096"] in table
    assert ["the", "sum", "500", "305", "−195", "100.0", "+4,096"] in table
    assert "Shares are of the instructions alone." in result.output


def test_what_is_not_shown_is_in_one_row(cli: CommandLine) -> None:
    table = rows(cli("explain", "-v", *BOTH, "--top", 1).output)
    assert ["4", "other", "rows", "500", "220", "−280", "−66.7"] in table


def test_an_explanation_as_json_adds_up(cli: CommandLine) -> None:
    result: dict[str, Any] = json.loads(cli("explain", *BOTH, "--json").output)
    assert result["difference"] == 420
    assert result["unexplained"] == 0
    assert sum(row["difference"] for row in result["functions"]) == 420
    assert sum(row["difference"] for row in result["subsystems"]) == 420
    assert result["functions"][0]["match"] == "ran in the second only"
    assert result["mode"] == "exact-plugin"
    around = result["differences"]
    assert around["levels"] == [{"factor": "kernel", "before": OLD, "after": NEW}]
    assert [entry["option"] for entry in around["options"]] == [
        "CONFIG_PER_VMA_LOCK",
        "CONFIG_SLUB_CPU_PARTIAL",
        "CONFIG_NR_CPUS",
        "CONFIG_USB",
    ]
    assert [(entry["path"], entry["after"]) for entry in around["values"]] == [
        ("/sys/block/nullb0/queue/read_ahead_kb", "8192")
    ]
    assert around["counters"] == [{"counter": "vmstat.pgfault", "before": 10.0, "after": 30.0}]
    assert result["counted_anew"] == []


def test_one_boot_parameter_of_one_kernel_is_a_difference(cli: CommandLine, world: World) -> None:
    result = cli("explain", "-v", *BOTH[2:], "--from-boot", "quiet", "--to-boot", "init_on_alloc=1")
    assert result.status == 0
    assert "fork: debian:6.12:cloud quiet → debian:6.12:cloud init_on_alloc=1: 0 " in result.output
    assert "quiet: quiet → (not given)" in result.output
    assert "init_on_alloc: (not given) → 1" in result.output
    assert "the second only: init_on_alloc=1" in result.output
    assert [boot.parameters for boot in world.walked] == [("quiet",), ("init_on_alloc=1",)]


def test_settings_are_read_once_for_a_boot(cli: CommandLine, world: World) -> None:
    first, second = cli("explain", *BOTH).output, cli("explain", *BOTH).output
    assert first == second
    assert len(world.walked) == 2


def test_settings_are_left_out_where_nobody_wants_them(cli: CommandLine, world: World) -> None:
    result = cli("explain", *BOTH, "--no-values")
    assert world.walked == []
    assert f"settings: those of {OLD} were not read" in result.output


def test_a_stored_result_is_explained_without_a_run(cli: CommandLine, world: World) -> None:
    world.kept(OLD, NEW)
    result = cli("explain", "-v", "upgrade")
    assert result.status == 0
    title = f"fork: {OLD} → {NEW}: +84 % (one perturbation: no interval), instructions per operation"
    assert result.output.startswith(title)
    assert ["vmstat.pgfault", "10", "30"] in rows(result.output)
    assert world.counted == []
    assert "anew" not in result.output


def test_what_is_known_of_such_changes_in_time_is_cited(cli: CommandLine, world: World) -> None:
    keep_a_table(world.store, 58, world.kept(OLD, NEW))
    result = json.loads(cli("explain", "upgrade", "--json").output)["fidelity"]["instructions"]["sentence"]
    assert "the right sign in 58 of 58 cases" in result
    assert f"instructions: {result}" in " ".join(cli("explain", "upgrade").output.split())


def test_a_result_may_be_told_by_number_or_be_the_latest(cli: CommandLine, world: World) -> None:
    number = world.kept(OLD, NEW)
    assert (
        cli("explain", "-v").output
        == cli("explain", "-v", number).output
        == cli("explain", "-v", "upgrade").output
    )


@pytest.mark.parametrize(
    ("given", "pair"),
    [
        ((), None),
        (("--to", "debian:6.12:cloud"), f"{OLD} → {NEW}"),
        (("--to", "debian:6.1"), None),
        (("--from", "debian:6.12:cloud", "--to", "debian:7.2"), f"{NEW} → debian:7.2"),
        (("--from", "debian:6.12:cloud"), f"{NEW} → {OLD}"),
    ],
)
def test_the_treatments_are_those_that_are_named(
    cli: CommandLine, world: World, given: tuple[str, ...], pair: str | None
) -> None:
    world.kept(OLD, NEW, "debian:7.2")
    result = cli("explain", "upgrade", *given)
    assert result.status == (0 if pair else 2)
    if pair:
        assert f"fork: {pair}:" in result.output


def test_trials_without_counts_by_function_are_counted_anew_and_that_is_said(
    cli: CommandLine, world: World
) -> None:
    world.kept(OLD, NEW, profiles=False)
    result = cli("explain", "upgrade")
    assert (
        f"The stored trials were not counted by function: {OLD} and {NEW} were counted anew" in result.output
    )
    assert [trial.treatment.label for trial in world.counted] == [OLD, NEW]
    assert json.loads(cli("explain", "upgrade", "--json").output)["counted_anew"] == [OLD, NEW]


def test_profiles_of_two_machines_are_counted_anew(
    cli: CommandLine, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(PROFILES, NEW, PROFILES[NEW].model_copy(update={"qemu": "10.0"}))
    world.kept(OLD, NEW)
    assert "were counted anew" in cli("explain", "upgrade").output


def test_a_study_file_that_never_ran_is_counted_now(cli: CommandLine, world: World, tmp_path: Path) -> None:
    file = tmp_path / "upgrade.toml"
    file.write_text(STUDY)
    result = cli("explain", file, "--workload", "fork")
    assert result.status == 0
    assert [trial.treatment.label for trial in world.counted] == ["debian:6.1", "debian:6.12"]


@pytest.mark.parametrize(
    ("arguments", "message", "hint"),
    [
        (("--to", "debian:6.13"), "upgrade has no treatment debian:6.13 (did you mean", f"{OLD}, {NEW}"),
        (("--to", OLD), f"--from and --to are both {OLD}", f"other treatments are {NEW}"),
        (("--from", OLD, "--to", OLD), f"--from and --to are both {OLD}", f"other treatments are {NEW}"),
        (
            ("--workload", "frok"),
            "upgrade has no workload frok (did you mean fork?)",
            "its workloads are fork",
        ),
        (("--boot", "quiet"), "--boot: goes with --kernel", ""),
        (("--memory", "1G"), "--memory: goes with --kernel", ""),
        (("--to-boot", "quiet"), "--to-boot: goes with --kernel", ""),
        (("--kernel", "debian:6.1"), "STUDY: goes with a study, not with --kernel", ""),
    ],
)
def test_wrong_names_of_a_result_are_told_with_the_right_ones(
    cli: CommandLine, world: World, arguments: tuple[str, ...], message: str, hint: str
) -> None:
    world.kept(OLD, NEW)
    result = cli("explain", "upgrade", *arguments)
    assert result.status == 2
    assert message in result.messages
    assert hint in result.messages
    assert world.counted == []


def test_of_several_workloads_or_treatments_one_has_to_be_named(cli: CommandLine, world: World) -> None:
    study = a_study("upgrade", kernels=(OLD, NEW, "debian:7.2"), workloads=("fork", "pipe"), perturbations=1)
    world.kept(OLD, NEW, "debian:7.2", study=study)
    result = cli("explain", "upgrade")
    assert "upgrade has 2 workloads; --workload has to say which one is explained" in result.messages
    result = cli("explain", "upgrade", "--workload", "fork")
    assert "upgrade has 3 treatments; --to has to say which one is explained" in result.messages
    assert f"its treatments are {OLD}, {NEW}, debian:7.2" in result.messages


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (
            ("--kernel", "debian:6.1", "--workload", "fork"),
            2,
            "--kernel: only debian:6.1; give two (6.1 6.12), or one",
        ),
        ((*BOTH, "--kernel", "debian:7.2"), 2, "--kernel: 3 given; give two"),
        ((*BOTH[:4], "--workload", "frok"), 2, "There is no workload frok (did you mean fork"),
        (BOTH[:4], 2, "--workload: which workload"),
        ((*BOTH, "--memory", "lots"), 2, "--memory:"),
        (("--kernel", "debian:6.1", *BOTH[:2], *BOTH[4:]), 2, "--from and --to are both debian:6.1:cloud"),
        ((*BOTH[2:], "--to-boot", "a=1", "--from-boot", "a=1"), 2, "are both a=1"),
        ((*BOTH, "--to-boot", "a b"), 2, "--to-boot: 'a b' is no boot parameter"),
        ((*BOTH, "--to-boot", "=1"), 2, "--to-boot: '=1' is no boot parameter"),
        ((*BOTH, "--to-boot", "a=1", "--to-boot", "a=2"), 2, "--to-boot: a is given twice"),
        ((*BOTH, "--from", "x"), 2, "--from: goes with a study"),
        (("nothing",), 1, "there is no study yet"),
        ((), 1, "there is no study yet"),
    ],
)
def test_mistakes_are_told_before_anything_is_booted(
    cli: CommandLine, world: World, arguments: tuple[str, ...], status: int, message: str
) -> None:
    result = cli("explain", *arguments)
    assert (result.status, world.counted) == (status, [])
    assert message in result.messages


def test_a_workload_that_cannot_be_counted_says_why(cli: CommandLine, world: World) -> None:
    failed = planned(OLD)
    world.counting_fails = a_trial(
        failed, outcome=Outcome.PANICKED, reason="Kernel panic", console="one\ntwo\n"
    )
    result = cli("explain", *BOTH)
    assert result.status == 1
    assert "fork was not counted by function under debian:6.1:cloud: Kernel panic" in result.messages
    assert "console ends with: two" in result.messages
    warning = DataWarning(kind=WarningKind.PLAIN_BOOT, text="it marks no region", advice="")
    world.counting_fails = a_trial(failed, warnings=(warning,), console="")
    assert "under debian:6.1:cloud: it marks no region" in cli("explain", *BOTH).messages


def test_a_qemu_without_plugins_is_told(cli: CommandLine, world: World) -> None:
    world.counting_fails = NoPluginHere(machine="exact", program="/usr/bin/qemu", problem="not built in")
    result = cli("explain", *BOTH)
    assert result.status == 1
    assert "cannot count by function with /usr/bin/qemu" in result.messages


def test_the_shell_completes_treatments_and_workloads_of_the_study(world: World) -> None:
    world.kept(OLD, NEW)
    context = typer.Context(typer.main.get_command(app))
    context.params = {"study": "upgrade"}
    assert treatment_names(context, "debian:6.1") == [OLD, NEW]
    assert treatment_names(context, "debian:6.12") == [NEW]
    assert workloads_of_study(context, "") == ["fork"]
    context.params = {"study": "nothing"}
    assert treatment_names(context, "") == []
    context.params = {"kernel": [OLD]}
    assert "fork" in workloads_of_study(context, "fo")


def test_the_shell_completes_nothing_where_there_is_no_store(world: World) -> None:
    context = typer.Context(typer.main.get_command(app))
    assert treatment_names(context, "") == workloads_of_study(context, "") == []
    assert not world.store.exists()


def test_an_explanation_is_25_lines_and_ends_with_its_answer(cli: CommandLine, world: World) -> None:
    world.kept(OLD, NEW)
    lines = cli("explain", "upgrade").output.splitlines()
    assert len(lines) <= 25
    assert " ".join(" ".join(lines[-3:]).split()).endswith(
        f"fork runs 84 % more instructions on {NEW} than on {OLD} (one perturbation: no interval); by "
        "function, own code, under one perturbation, net +420 (500 → 920): "
        "mas_store +700, vma_link −300, kmem_cache_alloc → kmem_cache_alloc_noprof +20."
    )
    assert "next: ktrial explain upgrade --prove" in lines


def test_a_stored_proof_is_shown_again_and_what_it_leaves_open_leads_to_the_releases(
    cli: CommandLine, world: World
) -> None:
    number = world.kept(OLD, NEW)
    parity = Candidate(
        name="RUN_TO_PARITY",
        kind=CauseKind.FEATURE,
        target="RUN_TO_PARITY",
        before="",
        after="RUN_TO_PARITY",
        on_to="NO_RUN_TO_PARITY",
    )
    proof = Proof(
        workload="fork",
        before=OLD,
        after=NEW,
        values_before=(500,),
        values_after=(920,),
        tested=(Tried(candidate=parity, side=ProofSide.TO, status=Status.MEASURED, effects=(105.0,)),),
        together=Together(names=("RUN_TO_PARITY",), effects=(105.0,)),
    )
    with open_store(str(world.store)) as store:
        store.add_proof(number, proof)
    lines = cli("explain", "upgrade").output.splitlines()
    assert len(lines) <= 25
    assert "RUN_TO_PARITY +105 (25.0 %); not explained +315 (75.0 %)." in " ".join(" ".join(lines).split())
    assert "next: ktrial bisect versions 6.1..6.12:cloud fork --dry-run" in lines


def test_of_a_program_the_kernels_part_is_told_apart(cli: CommandLine, world: World) -> None:
    sides = {name: {("vfs_read", ""): count} for name, count in ((OLD, 1000), (NEW, 1100))}
    of_program = {
        name: a_profile(counts, kernel=name.removesuffix(":cloud"), program=4000)
        for name, counts in sides.items()
    }
    world.profiles = of_program
    world.kept(OLD, NEW)
    text = " ".join(cli("explain", "upgrade").output.split())
    assert f"The kernel's part is 20.0 % of the instructions on {OLD}: +10 %." in text


def test_the_answer_has_the_studys_number_and_says_that_functions_are_of_one_perturbation(
    cli: CommandLine, tmp_path: Path
) -> None:
    record = by_the_plugin(a_record(("debian:5.10", "debian:6.12"), ("fork",)))
    store = str(a_store(tmp_path / "kept", with_real_profiles(record, ("fork",))))
    (comparison,) = json.loads(cli("show", "1", "--json", "--store", store).output)["comparisons"]
    assert comparison["ratio"] == pytest.approx(1.358, abs=1e-3)
    interval = (comparison["low"], comparison["high"])
    output = " ".join(cli("explain", "1", "--no-values", "--store", store).output.split())
    assert "fork: debian:5.10 → debian:6.12: +35.8 %, instructions per operation" in output
    assert "fork runs 35.8 % more instructions on debian:6.12 than on debian:5.10" in output
    assert "; by function, each with what it calls, under one perturbation, net +42,282 (" in output
    assert " (82,686 → 124,969): " in output, "it adds up in its own terms"
    assert " elsewhere " in output, "shown rows add up to the difference"
    assert "51.1 %" not in output, "the counted functions are another total, in instructions"
    assert "51.1" not in cli("explain", "1", "-v", "--no-values", "--store", store).output.splitlines()[0]
    change = json.loads(cli("explain", "1", "--json", "--no-values", "--store", store).output)["change"]
    assert (change["ratio"], change["low"], change["high"]) == (comparison["ratio"], *interval)
    assert change["no_interval"] == ""


def test_kernels_without_a_study_have_one_perturbation_and_no_interval(cli: CommandLine) -> None:
    """As the stored study does where it has one perturbation."""
    words = "(one perturbation: no interval)"
    shown = " ".join(cli("explain", *BOTH).output.split())
    assert shown.count(words) == 2, "in the title and in the answer"
    change = json.loads(cli("explain", "--json", *BOTH).output)["change"]
    assert change == {
        "ratio": pytest.approx(1.84),
        "low": None,
        "high": None,
        "no_interval": "one perturbation: no interval",
    }
