"""Which releases lie between two, of those that the mirrors hold."""

import pytest

from ktrial.kernels.errors import KernelUsageError
from ktrial.kernels.providers import debian
from ktrial.kernels.providers.debian import Available

KNOWN = tuple(
    Available(f"debian:{release}", release, version, "sid")
    for release, version in (
        ("5.10.0-30-cloud-amd64", "5.10.218-1"),
        ("6.1.0-49-cloud-amd64", "6.1.175-1"),
        ("6.1.0-50-cloud-amd64", "6.1.176-1"),
        ("6.12.90+deb13-cloud-amd64", "6.12.90-1"),
        ("6.12.117+deb13-cloud-amd64", "6.12.117-1"),
        ("7.3-cloud-amd64", "7.3~rc7-1~exp1"),
    )
)


@pytest.fixture(autouse=True)
def _mirrors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(debian, "releases", lambda _flavour, _progress: KNOWN)


@pytest.mark.parametrize(
    ("text", "first", "last"),
    [
        ("5.10..6.1", 0, 2),
        ("debian:6.1..debian:6.12", 2, 4),
        ("6.1.175..6.12.90", 1, 3),
        ("6.1.0-49..6.12.117+deb13-cloud-amd64", 1, 4),
        ("6.12..7.3:cloud", 4, 5),
    ],
)
def test_each_end_is_the_newest_release_that_is_meant(text: str, first: int, last: int) -> None:
    assert debian.releases_between(text) == KNOWN[first : last + 1]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("6.1", "write A..B"),
        ("..6.1", "write A..B"),
        ("6.12..6.1", "is not newer than"),
        ("6.1..6.1", "is not newer than"),
        ("4.4..6.1", "no suite of the configured mirrors holds 4.4"),
        ("6.1:rt..6.12:cloud", "of one flavour"),
        ("6.1..6.12:big", "of one flavour"),
    ],
)
def test_what_is_no_range_is_told(text: str, problem: str) -> None:
    with pytest.raises(KernelUsageError, match=problem.replace(".", r"\.")):
        debian.releases_between(text)
