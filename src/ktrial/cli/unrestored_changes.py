"""What every command does first: put back what a ktrial that was killed has left changed on this system."""

from ktrial.cli.error_handling import tell
from ktrial.knobs.journal.location import is_anything_to_undo


def put_back_at_start() -> None:
    """Put back what a ktrial that was killed has left behind: one stat where there is nothing."""
    if not is_anything_to_undo():
        return
    from ktrial.cli.console import say
    from ktrial.knobs import LEFT, Journal, RestoreOutcome, abandoned
    from ktrial.knobs.errors import JournalError, JournalHeld
    from ktrial.target import LocalTarget

    journal = Journal()
    try:
        with journal.held(wait=False):
            undone = abandoned(journal, LocalTarget())
    except JournalHeld:
        return  # its owner is alive, and puts everything back itself
    except JournalError as error:
        tell(error.message, error.advice, kind="warning")
        return
    for one in undone:
        if one.ending in LEFT:
            tell(one.text, kind="warning")
        elif one.ending in {RestoreOutcome.RESTORED, RestoreOutcome.OTHER_BOOT}:
            say(f"ktrial: left by an earlier ktrial that was ended: {one.text}")
