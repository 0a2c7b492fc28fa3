"""One-way analysis of variance from counts, means and standard deviations."""

from collections.abc import Sequence

from ktrial.model.imported import Anova
from ktrial.stats.independent.moments import Moments


def one_way(groups: Sequence[Moments]) -> Anova:
    """Fisher's: equal variances assumed. Raises ValueError: one group, or one without spread."""
    from scipy import stats

    known = _known(groups)
    total = sum(runs for runs, _, _ in known)
    grand = sum(runs * mean for runs, mean, _ in known) / total
    between = sum(runs * (mean - grand) ** 2 for runs, mean, _ in known)
    within = sum((runs - 1) * sd * sd for runs, _, sd in known)
    df_between, df_within = len(known) - 1, total - len(known)
    f = (between / df_between) / (within / df_within) if within else float("inf")
    return Anova(
        f=f,
        between=df_between,
        within=df_within,
        p=float(stats.f.sf(f, df_between, df_within)),
        ss_between=between,
        ss_within=within,
    )


def welch(groups: Sequence[Moments]) -> Anova:
    """Welch's (Biometrika 38, 1951): variances may differ. Raises ValueError as above, or for an SD of 0."""
    from scipy import stats

    known = _known(groups)
    if any(sd == 0 for _, _, sd in known):
        raise ValueError("a group without any spread has no weight in Welch's test")
    k = len(known)
    weights = [runs / sd**2 for runs, _, sd in known]
    whole = sum(weights)
    grand = sum(weight * mean for weight, (_, mean, _) in zip(weights, known, strict=True)) / whole
    lack = sum(
        (1 - weight / whole) ** 2 / (runs - 1) for weight, (runs, _, _) in zip(weights, known, strict=True)
    )
    numerator = sum(
        weight * (mean - grand) ** 2 for weight, (_, mean, _) in zip(weights, known, strict=True)
    ) / (k - 1)
    f = numerator / (1 + 2 * (k - 2) / (k * k - 1) * lack)
    within = (k * k - 1) / (3 * lack)
    return Anova(f=f, between=k - 1, within=within, p=float(stats.f.sf(f, k - 1, within)))


def _known(groups: Sequence[Moments]) -> list[tuple[int, float, float]]:
    if len(groups) < 2:
        raise ValueError("an analysis of variance needs two groups")
    return [(group.known[0], group.mean, group.known[1]) for group in groups]
