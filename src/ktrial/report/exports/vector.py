"""Each operation's instructions, one number a line, in the order in which they ran."""

from fractions import Fraction

from ktrial.format.number_format import exactly
from ktrial.model.profile import Profile


class Vector:
    """For statistics of one's own."""

    name = "vector"
    summary = "each operation's instructions, one a line: R, numpy, a spreadsheet"

    def text(self, profile: Profile) -> str:
        """Instructions from one mark to the next; the mean where a mark ends several operations."""
        counts = profile.region.operations
        bundle = profile.operations // counts.count
        return "".join(f"{exactly(Fraction(count, bundle))}\n" for count in counts.vector or ())


EXPORT = Vector()
