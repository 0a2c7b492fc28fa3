"""Replication: a bundle's study runs again in guests, and every number is compared."""

import json
import re
import shutil
import tomllib
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from tests.support import bundles
from tests.support.command_line import KNOWN, STUDY, CommandLine
from tests.support.report_records import a_record
from tests.support.scripted import ScriptedMachine, a_kernel, not_found, number_of, scripted_resources

from ktrial.analysis.replication import agreement, word
from ktrial.bundle import replicating
from ktrial.experiment import session
from ktrial.kernels import Progress
from ktrial.kernels.errors import KernelError
from ktrial.model.base import digest
from ktrial.model.comparison import Verdict
from ktrial.model.kernel import Kernel
from ktrial.model.machine import Boot
from ktrial.model.replication import Agreement, Word
from ktrial.model.study import Study
from ktrial.store.store import open_store
from ktrial.studyfile.diagnostics import StudySource
from ktrial.studyfile.reader import study_from
from ktrial.target import Run, StepResult

B, W, E, N = Verdict.BETTER, Verdict.WORSE, Verdict.EQUIVALENT, Verdict.INCONCLUSIVE


def cached(digest: str, _progress: Progress) -> Kernel:
    for name in ("debian:6.1", "debian:6.12"):
        if a_kernel(name).digest == digest:
            return a_kernel(name)
    raise not_found(digest)


def not_cached(digest: str, _progress: Progress) -> Kernel:
    raise not_found(digest)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with the bundle of a study that ran on the scripted machine."""
    where = tmp_path_factory.mktemp("made")
    (where / "upgrade.toml").write_text(STUDY)
    study = study_from(tomllib.loads(STUDY), StudySource("upgrade.toml"), "upgrade", where, KNOWN)
    with open_store(where / "trials.db") as store:
        session.run(study, store=store, machine=ScriptedMachine(), resources=scripted_resources())
    bundles.bundle(where / "trials.db", where / "upgrade.zip")
    return where


class Replicating(CommandLine):
    """`ktrial replicate`, on a scripted machine."""

    def on(
        self,
        machine: ScriptedMachine,
        cached_by: Callable[[str, Progress], Kernel] = cached,
        missing: dict[str, KernelError] | None = None,
    ) -> None:
        run = partial(
            replicating.replicate,
            machine=machine,
            resources=scripted_resources(missing=missing),
            cached=cached_by,
        )
        self._patch.setattr("ktrial.bundle.replicating.replicate", run)


@pytest.fixture
def cli(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Replicating:
    monkeypatch.setattr("platformdirs.user_data_dir", lambda name: str(tmp_path / "data"))
    made = Replicating(monkeypatch, capsys)
    made.on(ScriptedMachine())
    return made


@pytest.fixture
def bundle(made: Path, tmp_path: Path) -> Path:
    return Path(shutil.copy(made / "upgrade.zip", tmp_path))


def test_every_number_is_identical(cli: Replicating, bundle: Path) -> None:
    said = cli("replicate", bundle)
    assert said.status == 0, said.messages
    assert "Identical: 8 of 8 numbers are identical. Of 2 verdicts: 2 consistent." in said.output
    assert "16 of 16 event counters are identical" in said.output
    page = bundle.with_name("upgrade-replicated.html").read_text()
    assert "8 of 8 numbers are identical" in page
    assert "Numbers that are not identical" not in page
    assert '<table class="kernels"' not in page, "which is laid out as the report's list of kernels is"


def test_nothing_is_left_behind_but_the_page(cli: Replicating, bundle: Path, tmp_path: Path) -> None:
    cli("replicate", bundle)
    left = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()}
    assert left == {"upgrade.zip", "upgrade-replicated.html"}


def test_a_planted_digit_is_found(cli: Replicating, bundle: Path, tmp_path: Path) -> None:
    def change(trial: dict[str, Any]) -> dict[str, Any]:
        trial["samples"][0]["value"] += 1
        return trial

    forged = bundles.forged(bundle, tmp_path / "forged.zip", "trials/00002.json", change)
    said = cli("replicate", forged)
    assert said.status == 1
    assert "Contradicted: 7 of 8 numbers are identical" in said.output
    assert "likely reason: nothing that was executed differs: a number of the bundle" in said.output


def test_a_counter_that_differs_is_named(cli: Replicating, bundle: Path, tmp_path: Path) -> None:
    def change(trial: dict[str, Any]) -> dict[str, Any]:
        trial["counters"][0]["delta"] += 3
        return trial

    said = cli("replicate", bundles.forged(bundle, tmp_path / "forged.zip", "trials/00001.json", change))
    assert "15 of 16 event counters are identical" in said.output
    assert re.search(
        r"^  \S+ \(fork, debian:6\.12?, perturbation \d\): (\d), now (?!\1)\d$", said.output, re.M
    )


def test_another_qemu_may_differ_within_the_bounds(cli: Replicating, bundle: Path) -> None:
    def a_little_more(boot: Boot, run: Run) -> StepResult:
        answer = number_of(boot, run)
        return answer.model_copy(update={"stdout": str(float(answer.stdout or 0) * 1.001)})

    cli.on(ScriptedMachine(a_little_more, qemu="10.0.2"))
    data = json.loads(cli("replicate", bundle, "--json").output)
    assert (data["outcome"], data["identical"], data["compared"]) == ("within bounds", 0, 8)
    assert {one["agreement"] for one in data["numbers"]} == {"within bounds"}
    assert data["likely"].startswith("another QEMU counted: 10.0.2")


def test_beyond_the_bounds_it_is_contradicted(cli: Replicating, bundle: Path) -> None:
    def much_more(boot: Boot, run: Run) -> StepResult:
        answer = number_of(boot, run)
        slow = 1.1 if "6.12" in boot.kernel.name else 1.0
        return answer.model_copy(update={"stdout": str(float(answer.stdout or 0) * slow)})

    cli.on(ScriptedMachine(much_more, qemu="10.0.2"))
    said = cli("replicate", bundle, "--json")
    data = json.loads(said.output)
    assert (said.status, data["outcome"], data["words"]["contradicted"]) == (1, "contradicted", 2)


def test_a_kernel_that_stands_in_is_told(
    cli: Replicating, bundle: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def newer(name: str) -> Kernel:
        return a_kernel(name).model_copy(update={"digest": digest([name, "newer"]), "release": "6.x"})

    everything = scripted_resources()
    other = replace_obtain(everything, newer)
    run = partial(replicating.replicate, machine=ScriptedMachine(), resources=other, cached=not_cached)
    monkeypatch.setattr("ktrial.bundle.replicating.replicate", run)
    said = cli("replicate", bundle)
    assert said.status == 0
    assert "kernel debian:6.1: debian:6.1.0-1-cloud-amd64 (6.x) replaces it" in said.output
    assert (
        "likely reason: another kernel was booted" not in said.output
    )  # every number is identical all the same
    data = json.loads(cli("replicate", bundle, "--json").output)
    assert [one["same"] for one in data["kernels"]] == [False, False]


def replace_obtain(plain: Any, make: Callable[[str], Kernel]) -> Any:
    from dataclasses import replace

    return replace(plain, obtain=lambda kernel, _progress: make(kernel.asked))


def test_a_kernel_that_cannot_be_had_leaves_it_undecided(cli: Replicating, bundle: Path) -> None:
    names = ("debian:6.12", "debian:6.12.0-1-cloud-amd64")
    cli.on(ScriptedMachine(), not_cached, {name: not_found(name) for name in names})
    said = cli("replicate", bundle)
    assert said.status == 3
    assert "kernel debian:6.12: not available: " in said.output
    assert "Undecided: 4 of 8 numbers are identical" in said.output


def test_only_a_workload_and_a_perturbation(cli: Replicating, bundle: Path) -> None:
    data = json.loads(cli("replicate", bundle, "--only", "fork", "--perturbations", 1, "--json").output)
    assert (data["identical"], data["compared"], data["trials"]) == (2, 2, {"run": 2, "bundled": 2})
    assert {one["before"]["workload"] for one in data["verdicts"]} == {"fork"}
    said = cli("replicate", bundle, "--only", "frok")
    assert (said.status, "it has fork, pipe" in said.messages) == (2, True)


def of_study(change: Callable[[dict[str, Any]], object]) -> Callable[[Path, Path], Path]:
    """A bundle whose study is changed, and all that is checked of it, too."""

    def changed(bundle: Path, to: Path) -> Path:
        files = bundles.files_of(bundle)
        study = json.loads(files["study.json"])
        change(study)
        contents = json.loads(files["bundle.json"])
        contents["study_digest"] = digest(Study.model_validate(study))
        files |= {"study.json": json.dumps(study).encode(), "bundle.json": json.dumps(contents).encode()}
        to.write_bytes(bundles.packed(bundles.relisted(files)))
        return to

    return changed


COMMAND = {"name": "mine", "parameters": {}, "command": {"argv": ["/bin/sh", "-c", "touch /tmp/owned"]}}
REFUSED = {
    "commands on this system": (
        of_study(lambda study: study["machine"].update(kind="host")),
        1,
        "its commands would run on this system itself",
    ),
    "files of this system": (
        of_study(lambda study: study["machine"].update(files=["/etc/shadow"])),
        2,
        "not in it: /etc/shadow",
    ),
    "programs of this system": (
        of_study(lambda study: study["workloads"].append(COMMAND)),
        2,
        "not in it: /bin/sh",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_would_reach_out_of_a_guest_is_refused(
    name: str, cli: Replicating, bundle: Path, tmp_path: Path
) -> None:
    change, status, text = REFUSED[name]
    machine = ScriptedMachine()
    cli.on(machine)
    said = cli("replicate", change(bundle, tmp_path / "evil.zip"))
    assert (said.status, text in said.messages) == (status, True), said.messages
    assert machine.programs == []


@pytest.mark.parametrize(
    ("name", "asked"),
    [
        ("path:/etc/passwd", []),
        ("git:/tmp/evil@HEAD", []),
        ("source:/tmp/evil", []),
        ("host", []),
        ("debian:6.1;reboot", []),
        ("debian:6.1", ["debian:6.1"]),
    ],
)
def test_a_bundle_names_debian_s_kernels_and_no_others(name: str, asked: list[str], bundle: Path) -> None:
    from ktrial.bundle.reading import open_bundle
    from ktrial.bundle.replicating import KernelSources
    from ktrial.model.references import KernelRef

    wanted: list[str] = []

    def obtain(kernel: str, _progress: Progress) -> Kernel:
        wanted.append(kernel)
        raise not_found(kernel)

    with open_bundle(bundle) as opened:
        without_kernels = replace(opened, contents=opened.contents.model_copy(update={"kernels": ()}))
        kernels = KernelSources(without_kernels, obtain, not_cached)
        with pytest.raises(KernelError, match="cannot be had"):
            kernels.obtain(KernelRef(asked=name, name=name), lambda *_: None)
    assert wanted == asked


def test_a_store_that_is_there_is_not_taken(cli: Replicating, bundle: Path, made: Path) -> None:
    said = cli("replicate", bundle, "--store", made / "trials.db")
    assert (said.status, "a store of its own" in said.messages) == (2, True)


@pytest.mark.parametrize(
    ("before", "now", "said"),
    [
        ((W, 1.04, 1.06), (W, 1.05, 1.07), Word.CONSISTENT),
        ((W, 1.04, 1.06), (W, 1.20, 1.30), Word.CONTRADICTED),
        ((W, 1.04, 1.06), (B, 0.90, 0.95), Word.CONTRADICTED),
        ((W, 1.02, 1.06), (E, 0.995, 1.03), Word.UNDECIDED),
        ((W, 1.04, 1.06), (N, 0.90, 1.20), Word.UNDECIDED),
        ((N, 0.99, 1.02), (W, 1.05, 1.07), Word.CONTRADICTED),
        ((E, 0.998, 1.002), (E, 0.999, 1.001), Word.CONSISTENT),
    ],
)
def test_the_words_of_replication(
    before: tuple[Verdict, float, float], now: tuple[Verdict, float, float], said: Word
) -> None:
    some = a_record(workloads=("fork",)).result.comparisons[0]

    def made(verdict: Verdict, low: float, high: float) -> Any:
        changes = {"verdict": verdict, "low": low, "high": high, "ratio": (low + high) / 2}
        return some.model_copy(update=changes)

    assert word(made(*before), made(*now), 0.0)[0] is said


@pytest.mark.parametrize(
    ("now", "value", "said"),
    [(W, 416.0, Word.CONSISTENT), (E, 416.0, Word.UNDECIDED), (W, None, Word.UNDECIDED)],
    ids=["the same verdict", "another verdict", "no number now"],
)
def test_a_change_from_nothing_has_no_ratio_and_a_word_all_the_same(
    now: Verdict, value: float | None, said: Word
) -> None:
    some = a_record(workloads=("fork",)).result.comparisons[0]
    nothing = {"ratio": None, "low": None, "high": None, "baseline_value": 0.0, "value": 416.0}
    before = some.model_copy(update={**nothing, "verdict": W})
    after = some.model_copy(update={**nothing, "verdict": now, "value": value})
    assert word(before, after, 0.0)[0] is said


def test_numbers_agree_to_the_last_digit_or_within_the_bounds_of_another_qemu() -> None:
    assert agreement(100.0, 100.0, bounded=False) is Agreement.IDENTICAL
    assert agreement(100.0, 100.00000000000001, bounded=False) is Agreement.DIFFERENT
    assert agreement(100.0, 101.9, bounded=True) is Agreement.WITHIN
    assert agreement(100.0, 102.1, bounded=True) is Agreement.DIFFERENT
    assert agreement(100.0, None, bounded=True) is Agreement.MISSING
