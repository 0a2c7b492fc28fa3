"""What all kinds of bisection do with what they search: the plan, the search, the result."""

from typing import TYPE_CHECKING

from ktrial.cli.commands._bisect_common import Wanted

if TYPE_CHECKING:
    from ktrial.bisect.bisection import SubsetGround
    from ktrial.bisect.settings import Terms
    from ktrial.experiment.single_kernel import Runs
    from ktrial.kernels import Progress


def searched(
    ground: "SubsetGround", terms: "Terms", wanted: Wanted, runs: "Runs", *, builds: bool = False
) -> None:
    """Show the plan; search; show the result."""
    from ktrial.bisect.bisection import Investigation
    from ktrial.bisect.plan import plan_of
    from ktrial.bisect.timed_bisection import TimedInvestigation
    from ktrial.cli.options.profiling import BadOption
    from ktrial.kernels.build import build_seconds

    if builds and wanted.on_host:
        raise BadOption(
            option="--machine host", problem="this system boots no other kernel; take exact or kvm"
        )

    names = [" + ".join(item.name for item in ground.described(at)) for at in range(ground.items.count)]
    differing = sum(len(ground.described(at)) for at in range(ground.items.count))
    seconds = build_seconds() if builds else None
    wanted.show_plan(plan_of(terms, names, differing, runs.store, builds=builds, build_seconds=seconds))
    kind = TimedInvestigation if wanted.in_time else Investigation
    wanted.show(kind(ground, terms, runs).run())


def progress_of(runs: "Runs", name: str) -> "Progress":
    """Steps of builds and fetches, told to whoever watches the runs."""

    def told(what: str, done: int = 0, total: int = 0) -> None:
        runs.observer.kernel_progress(name, what, done, total)

    return told
