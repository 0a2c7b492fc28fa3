"""What a program of somebody else's does with `import ktrial`: mypy --strict has nothing to say about it."""

from pathlib import Path

import ktrial


def ask(directory: Path) -> str:
    """Which syscalls are slower with mitigations."""
    study = ktrial.Study(
        name="mitigations",
        machine=ktrial.Machine(kernel="debian:6.12", memory_mib=512),
        factors=(ktrial.Factor.of("boot", ["", "mitigations=off"], target="mitigations"),),
        workloads=(ktrial.Workload(name="getppid"), ktrial.Workload(name="pipe")),
    )
    result = ktrial.run(study, store=directory / "trials.db", jobs=2)
    worse = [row for row in result.comparisons if row.verdict is ktrial.Verdict.WORSE]
    for comparison in worse:
        print(sentence(comparison))
    if worse:
        attribution: ktrial.Attribution = ktrial.explain(result, workload=worse[0].workload, boot=False)
        print(attribution.explanation.rows[0].name)
    return result.answer


def sentence(comparison: ktrial.Comparison) -> str:
    """`pipe: 2276 to 2510 instructions`."""
    return f"{comparison.workload}: {comparison.baseline_value} to {comparison.value} {comparison.unit}"


def failures(store: ktrial.Store, name: str) -> list[ktrial.Trial]:
    """Trials that did not complete."""
    return [trial for trial in store.result(name).trials if trial.outcome is not ktrial.Outcome.COMPLETED]


def first_sample(result: ktrial.StudyResult) -> ktrial.Sample:
    """Of the first trial."""
    return result.trials[0].samples[0]


def report(directory: Path) -> str:
    """As Markdown, or why there is none."""
    try:
        with ktrial.open_store(directory / "trials.db", read_only=True) as store:
            return store.result(ktrial.load_study("quick").name).to_markdown()
    except ktrial.KtrialError as error:
        return f"{error.message} {error.advice}"


def kernels(directory: Path) -> tuple[str, str, int]:
    """Two kernels, in three forms."""
    result = ktrial.compare(
        ["debian:6.1", "debian:6.12"], ["fork"], store=directory / "trials.db", margin=0.02, memory="256M"
    )
    return result.to_html(), result.to_csv("samples"), len(result.to_frame())


def runs(path: Path) -> int:
    """How many families of measurements are in a file of another tool."""
    return len(ktrial.load_measurements(path).families)


class Idle:
    """A workload: what mypy compares with the protocol."""

    def __init__(self, workload: ktrial.plugins.Workload) -> None:
        self.name = workload.description.name
