"""How long tests search for faults: a little for each change, much longer at night."""

from hypothesis import settings

NIGHTLY = "nightly"
"""The name of hypothesis's profile for the night."""
TIMES_AT_NIGHT = 20


def is_night() -> bool:
    """Whether pytest was given --nightly: conftest.py has chosen the profile."""
    return settings.get_current_profile_name() == NIGHTLY


def examples(for_each_change: int) -> int:
    """How many examples hypothesis draws, in the profile that conftest.py has chosen."""
    return for_each_change * (TIMES_AT_NIGHT if is_night() else 1)
