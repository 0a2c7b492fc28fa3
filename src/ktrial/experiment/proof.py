"""Prove causes: find what moves the count, take each of it back alone, then all that helped together."""

from collections.abc import Sequence

from ktrial import kernels
from ktrial.analysis.attribution.candidates import Candidates, candidates, picked
from ktrial.analysis.attribution.proof import effect_of, helpful, tested
from ktrial.analysis.attribution.target import AttributionQuestion
from ktrial.analysis.errors import OtherMachine, UnknownCandidate
from ktrial.errors import Interrupted
from ktrial.experiment.explain import Guests, explain_record
from ktrial.experiment.jobs import obtained
from ktrial.experiment.proof_cost import cost_of, with_controls
from ktrial.experiment.proof_runs import EXACT, Counted, Proven, Proving, Runs
from ktrial.experiment.proof_screening import LEAST, NO_ROOM, Screening, expected
from ktrial.experiment.proof_study import BOOT_CONTROL, CONTROL, Reverting, boots_of_their_own
from ktrial.model.base import digest
from ktrial.model.conditions_diff import Attribution
from ktrial.model.proof import Candidate, Cost, Proof, ProofSide, Status, Together, Tried, Untried
from ktrial.model.suggestions import nearest
from ktrial.studyfile.references import resolved

__all__ = ["Proven", "Proving", "prove"]


def prove(asked: AttributionQuestion, how: Proving) -> Proven:
    """Explain the difference, and measure the share of everything that can be taken back.

    Trials are kept as those of any study, and taken over from other studies in the store; what is there is
    not run again. Raises OtherMachine, NotCounted, UnknownCandidate, and what `session.run` raises.
    """
    if asked.study.machine.kind != EXACT:
        raise OtherMachine(study=asked.study.name, machine=asked.study.machine.kind)
    return _Proving(asked, how).proven()


class _Proving:
    def __init__(self, asked: AttributionQuestion, how: Proving) -> None:
        self._asked, self._how = asked, how
        self._runs = Runs(asked, how)
        self._controls: list[float] = []

    def proven(self) -> Proven:
        """First the two as they are, then what moves the count, each alone, then all that helped."""
        base = self._runs.run([])
        if not self._runs.seconds_a_trial:
            # The clock's: on a busy machine the quickest trial is nearest to what it computed.
            self._runs.seconds_a_trial = min(one.seconds for one in base.record.trials)
        why = self._why(base)
        proof, chosen = self._planned(base, why)
        screening = Screening(self._runs, proof.differences[0])
        results: tuple[Tried, ...] = ()
        rows: list[Reverting] = []
        try:
            if self._in_groups(chosen):
                screening.run(chosen)
                rows = self._with_room(screening)
            else:
                rows = [Reverting(one.sides[0], (one,)) for one in chosen]
            results = self._tested(rows)
            together = self._together(helpful(results, proof.difference))
        except (Interrupted, KeyboardInterrupt):
            results = results or self._known(rows)
            self._how.known_so_far(self._filled(proof, screening, results, None))
            raise
        proof = self._filled(proof, screening, results, together)
        self._keep(proof, base.record.id)
        return Proven(why, proof)

    def _planned(self, base: Counted, why: Attribution) -> tuple[Proof, tuple[Candidate, ...]]:
        """The proof without its trials, and what is tried."""
        offered = self._candidates(why)
        chosen, left_out = self._chosen(offered)
        in_groups = self._in_groups(chosen)
        estimated = self._cost_in_groups(chosen) if in_groups else self._cost_alone(chosen)
        self._how.tell(estimated, chosen, in_groups)
        ends = base.ends
        proof = Proof(
            workload=self._asked.workload,
            before=why.explanation.before.label,
            after=why.explanation.after.label,
            values_before=ends[ProofSide.FROM],
            values_after=ends[ProofSide.TO],
            left_out=(*offered.left_out, *left_out),
            estimated=estimated,
        )
        return proof, chosen

    def _in_groups(self, chosen: Sequence[Candidate]) -> bool:
        """Whether they are first taken back together: what was asked for by name is tried alone."""
        return not self._how.wanted and not self._how.each and len(chosen) >= LEAST

    def _filled(
        self, proof: Proof, screening: Screening, results: Sequence[Tried], together: Together | None
    ) -> Proof:
        update = {
            "tested": (*results, *screening.refused, *screening.grouped),
            "groups": (*screening.groups, *screening.only_together(results)),
            "left_out": (*proof.left_out, *screening.left_out),
            "together": together,
            "control": max(self._controls, default=0.0),
            "used": self._runs.used,
            "studies": tuple(dict.fromkeys(self._runs.studies)),
        }
        return proof.model_copy(update=update)

    def _keep(self, proof: Proof, ends: int) -> None:
        """With the study whose difference it is; where that is not in the store, with that of the two ends.

        A proof of some of the candidates does not take the place of one of more.
        """
        store = self._how.store
        stored = store.newest(digest=digest(resolved(self._asked.study)))
        names = {one.candidate.name for one in proof.tested}
        for number in {stored.id if stored else ends, ends}:
            same = (one for one in store.proofs(number) if one.difference_key == proof.difference_key)
            if not any({one.candidate.name for one in old.tested} > names for old in same):
                store.add_proof(number, proof)

    def _why(self, base: Counted) -> Attribution:
        before, after = (base.treatment(Reverting(side)).label for side in (ProofSide.FROM, ProofSide.TO))
        guests = Guests(self._runs.machine, self._how.sources, self._how.observer)
        return explain_record(self._how.store, base.record, self._asked.workload, before, after, guests)

    def _candidates(self, why: Attribution) -> Candidates:
        study = resolved(self._asked.study)
        both = (self._asked.before, self._asked.after)
        booted = [obtained(study, one, self._how.sources, kernels.silent) for one in both]
        modules = [kernels.module_names(one) for one in booted]
        return candidates(study, *both, why, modules)

    def _chosen(self, offered: Candidates) -> tuple[tuple[Candidate, ...], tuple[Untried, ...]]:
        """Those that are wanted; tried alone, as many as the budget has room for, the likeliest first."""
        every = offered.ranked
        if self._how.wanted:
            every, unknown = picked(every, self._how.wanted)
            if unknown:
                names = [one.name for one in offered.ranked]
                known = ", ".join(names) or "none"
                raise UnknownCandidate(name=unknown[0], similar=nearest(unknown[0], names), known=known)
        if self._in_groups(every):
            return every, ()
        chosen: list[Candidate] = []
        left_out = []
        for one in every:
            if self._how.budget is not None and self._cost_alone((*chosen, one)).seconds > self._how.budget:
                left_out.append(Untried(name=one.name, reason=NO_ROOM))
            else:
                chosen.append(one)
        return tuple(chosen), tuple(left_out)

    def _cost_alone(self, chosen: Sequence[Candidate]) -> Cost:
        """At most: trials of each, of their controls and of all together."""
        rows = [Reverting(one.sides[0], (one,)) for one in chosen]
        more = self._how.perturbations if len(rows) > 1 else 0
        return cost_of(self._runs, rows, self._how.perturbations, more)

    def _cost_in_groups(self, chosen: Sequence[Candidate]) -> Cost:
        """Where two of them move the count."""
        groups = cost_of(self._runs, expected(chosen), 1)
        alone = 4 * self._how.perturbations
        seconds = groups.seconds + alone * self._runs.seconds_a_trial
        return groups.model_copy(update={"trials": groups.trials + alone, "seconds": seconds})

    def _with_room(self, screening: Screening) -> list[Reverting]:
        """What was found to move the count, as far as the budget has room for measuring it."""
        rows: list[Reverting] = []
        for row in screening.found:
            more = cost_of(self._runs, [*rows, row], self._how.perturbations)
            if screening.has_room(more):
                rows.append(row)
            else:
                screening.leave_out(row)
        return rows

    def _tested(self, rows: Sequence[Reverting]) -> tuple[Tried, ...]:
        """Each candidate on its first side; where the kernel refuses that, on its second. Largest first."""
        results: dict[str, Tried] = {}
        while rows:
            counted = self._runs.run(with_controls(rows))
            again = []
            for row in rows:
                (one,) = row.changed
                told = self._judged(counted, row)
                results[one.name] = _told_both(results.get(one.name), told)
                if told.status is Status.REFUSED and row.side is not one.sides[-1]:
                    again.append(Reverting(one.sides[-1], (one,)))
            rows = again
        return tuple(sorted(results.values(), key=lambda one: -abs(one.effect)))

    def _known(self, rows: Sequence[Reverting]) -> tuple[Tried, ...]:
        """Of those that were being tried when it was interrupted: what has all its trials."""
        if not rows:
            return ()
        counted = self._runs.stored_of(with_controls(rows))
        whole = [row for row in rows if all(map(counted.is_whole, with_controls([row])))]
        told = [self._judged(counted, row) for row in whole]
        return tuple(sorted(told, key=lambda one: -abs(one.effect)))

    def _judged(self, counted: Counted, row: Reverting) -> Tried:
        (one,) = row.changed
        changes_nothing = BOOT_CONTROL if boots_of_their_own([row]) else CONTROL
        control = counted.effect(Reverting(row.side, (changes_nothing,)))
        self._controls += map(abs, control)
        return tested(one, row.side, counted.counts, counted.treatment(row), counted.ends, control)

    def _together(self, helped: Sequence[Tried]) -> Together | None:
        """All that helped at once, on each side what was taken back there."""
        names = tuple(one.candidate.name for one in helped)
        if len(helped) < 2:
            return Together(names=names, effects=helped[0].effects) if helped else None
        by_side = {side: tuple(one.candidate for one in helped if one.side is side) for side in ProofSide}
        rows = [Reverting(side, changed) for side, changed in by_side.items() if changed]
        counted = self._runs.run(rows)
        parts = []
        for row in rows:
            treatment = counted.treatment(row)
            if lost := counted.counts.problem(treatment):
                reason = f"{treatment.label} ended as {lost.outcome.value}: {lost.reason}"
                return Together(names=names, reason=reason)
            parts.append(effect_of(row.side, counted.counts.values(treatment), counted.ends))
        return Together(names=names, effects=tuple(map(sum, zip(*parts, strict=True))))


def _told_both(first: Tried | None, told: Tried) -> Tried:
    """Of one that was refused on both sides, what both kernels said."""
    if first is None or told.status is not Status.REFUSED:
        return told
    return told.model_copy(update={"reason": f"{first.reason}; the other way round: {told.reason}"})
