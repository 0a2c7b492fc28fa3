"""Fresh blocks for the size of an effect: one that ended its study early looks larger than it is."""

from ktrial.analysis.errors import NothingToConfirm
from ktrial.model.study import Stopping, Study

_NAME = "-confirmation"


def confirmation_of(study: Study, blocks: int) -> Study:
    """The study again, with other draws, in a number of blocks that is fixed. Raises NothingToConfirm.

    What ended the first study has no part in the second: its estimates are not inflated by it. (Whitehead,
    'On the bias of maximum likelihood estimation following a sequential test', Biometrika 73(3), 1986, has
    the bias of the first.)
    """
    if study.timing is None:
        raise NothingToConfirm(study=study.name)
    timing = study.timing.model_copy(update={"blocks": blocks, "stopping": Stopping.FIXED})
    return study.model_copy(
        update={"name": f"{study.name}{_NAME}", "seed": (study.seed + 1) % 2**31, "timing": timing}
    )
