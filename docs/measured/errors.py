"""What can be wrong with the numbers of the documentation."""


class NumbersError(Exception):
    """A declaration, a page or a measurement is not as it has to be; the text says which, and how."""


class NotMeasured(NumbersError):
    """A number cannot be had: a trial failed, or a function did not run."""


class ClaimBroken(NumbersError):
    """A sentence beside the numbers says what they no longer say: it has to be written anew."""
