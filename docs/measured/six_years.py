"""The study of docs/six-years.md: its numbers, named as the page's sentences need them."""

from docs.measured.errors import NotMeasured
from docs.measured.measuring import Measuring
from docs.measured.pages import ROOT
from docs.measured.study_numbers import StudyNumbers, Why
from docs.measured.wording import Lookup, decimal, percent, signed, with_commas

from ktrial.analysis.attribution.question import question
from ktrial.model.attribution import Status

PAGE = "docs/six-years.md"
STUDY = ROOT / "studies" / "kernel-upgrades.toml"
KERNELS = ("5.10", "6.1", "6.12", "6.18", "7.2")
FIRST = KERNELS[0]
_MILLION = 1_000_000


class SixYears:
    """The study's numbers by series: `6.12` is Debian's cloud kernel of that series."""

    def __init__(self, measuring: Measuring) -> None:
        self._measuring = measuring
        self.numbers: StudyNumbers = measuring.run(measuring.in_file(STUDY))
        uses = self.numbers.record.study.workloads
        self.workloads = tuple(use.name for use in uses)

    def value(self, workload: str, series: str, metric: str = "") -> float:
        """A value of one kernel."""
        return self.numbers.value(f"debian:{series}", workload, metric)

    def ratio(self, workload: str, after: str, before: str = FIRST) -> float:
        """One kernel's instructions over another's."""
        return self.value(workload, after) / self.value(workload, before)

    def largest(self, workload: str) -> tuple[str, float]:
        """The series in which a workload is furthest from the first one, in percent; and the ratio there."""
        ratios = {series: self.ratio(workload, series) for series in KERNELS[1:]}
        return max(ratios.items(), key=lambda item: abs(item[1] - 1))

    def ranked(self) -> list[str]:
        """The workloads, those that changed most first."""
        return sorted(self.workloads, key=lambda name: -abs(self.largest(name)[1] - 1))

    def why(self, workload: str, before: str, after: str) -> Why:
        """What one difference is made of."""
        return self.numbers.why(workload, f"debian:{before}", f"debian:{after}")

    def lookups(self) -> dict[str, str | Lookup]:
        """What templates may ask for; `W` is a workload, `A` and `B` are series, `F` is a function.

        `at[W A]` instructions, `millions[W A]`; `change[W A]` against 5.10, `step[W A B]`, in percent with
        a sign, `whole[W A B]` without digits behind the point, `less[W A B]` without a sign;
        `count[W A METRIC]`; `was[W A B F]` and `now[W A B F]`: a function's instructions in A and in B;
        `was_millions`, `now_millions`; `part[W A B SUBSYSTEM]`; `proved[W A B NAME]`: the share of the
        difference that is gone when what differs by that name is taken back, in percent.
        """
        return {
            "at": Lookup(lambda workload, series: with_commas(self.value(workload, series))),
            "millions": Lookup(lambda workload, series: decimal(self.value(workload, series) / _MILLION, 1)),
            "change": Lookup(lambda workload, series: percent(self.ratio(workload, series))),
            "step": Lookup(lambda workload, old, new: percent(self.ratio(workload, new, old))),
            "whole": Lookup(lambda workload, old, new: percent(self.ratio(workload, new, old), 0)),
            "less": Lookup(lambda workload, old, new: percent(self.ratio(workload, new, old), 0)[1:]),
            "count": Lookup(self.count),
            "was": Lookup(lambda *asked: with_commas(self._was(*asked))),
            "now": Lookup(lambda *asked: with_commas(self._now(*asked))),
            "was_millions": Lookup(lambda *asked: decimal(self._was(*asked) / _MILLION, 1)),
            "now_millions": Lookup(lambda *asked: decimal(self._now(*asked) / _MILLION, 1)),
            "part": Lookup(self._part),
            "proved": Lookup(self._proved),
        }

    def count(self, workload: str, series: str, *metric: str) -> str:
        """A count of one kernel: `1,790`, `14.5`."""
        value = self.value(workload, series, " ".join(metric))
        return with_commas(value) if value == int(value) else decimal(value, 1)

    def _part(self, workload: str, before: str, after: str, *subsystem: str) -> str:
        """A subsystem's part of a difference."""
        return signed(self.why(workload, before, after).subsystem(" ".join(subsystem)), ",")

    def _proved(self, workload: str, before: str, after: str, name: str) -> str:
        """The measured share of one thing that differs. Raises NotMeasured where it has none."""
        study = self.numbers.record.study
        asked = question(study, workload, f"debian:{before}", f"debian:{after}")
        proof = self._measuring.proof(asked, name)
        shares = [proof.share(one.effect) for one in proof.tested if one.status is Status.MEASURED]
        if len(shares) != 1 or shares[0] is None:
            raise NotMeasured(f"{workload}: {name} has no measured share of its own")
        return f"{decimal(100 * shares[0], 0)} %"

    def _was(self, workload: str, before: str, after: str, *functions: str) -> float:
        """What functions had in the first of two kernels."""
        return sum(self.why(workload, before, after).before(each) for each in functions)

    def _now(self, workload: str, before: str, after: str, *functions: str) -> float:
        """What functions have in the second of two kernels."""
        return sum(self.why(workload, before, after).after(each) for each in functions)
