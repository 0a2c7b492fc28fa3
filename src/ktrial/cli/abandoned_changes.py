"""What a ktrial that was killed has left changed on this system: the next command puts it back."""

from ktrial.cli.error_handling import tell


def put_back_abandoned() -> None:
    """Put back what a ktrial that was killed has left behind: one stat where there is nothing."""
    from ktrial.knobs.journal_location import is_anything_to_undo

    if not is_anything_to_undo():
        return
    from ktrial.cli.console import say
    from ktrial.knobs.errors import JournalError, JournalHeld
    from ktrial.knobs.journal import Journal
    from ktrial.knobs.restore import LEFT, RestoreOutcome, abandoned
    from ktrial.target.local import LocalTarget

    journal = Journal()
    try:
        with journal.held(wait=False):
            undone = abandoned(journal, LocalTarget())
    except JournalHeld:
        return  # its owner is alive, and puts everything back itself
    except JournalError as error:
        tell(error.message, error.advice, kind="warning")
        return
    for change in undone:
        if change.ending in LEFT:
            tell(change.text, kind="warning")
        elif change.ending in {RestoreOutcome.RESTORED, RestoreOutcome.OTHER_BOOT}:
            say(f"ktrial: left by an earlier ktrial that was ended: {change.text}")
