"""The root of the errors: a message that says what is wrong, and a hint what to do next."""

from typing import ClassVar

from ktrial.package_names import on_this_system


class KtrialError(Exception):
    """What a person is told instead of a result.

    The message says what is wrong, where, and what is allowed; the hint says what to do next. A class of its
    own is for what somebody catches, or for advice that several places share. Everywhere else the room's
    general error is raised, with its text in place.
    """

    text: ClassVar[str] = ""
    """What it says, with its facts in braces; empty where the message is given."""
    hint: ClassVar[str] = ""
    exit_code: ClassVar[int] = 1
    """What a command that ends with it returns; 2 where the command was given something wrong."""

    def __init__(self, message: str = "", /, *, hint: object = "", **facts: object) -> None:
        self.facts = facts
        self._hint = str(hint)
        self.message = message or self.text.format(**facts)
        super().__init__(self.message)

    @property
    def advice(self) -> str:
        """The hint; empty where there is none. Packages have the names that this distribution gives them."""
        hint = self._hint or (self.hint.format(**self.facts) if self.facts else self.hint)
        return on_this_system(hint)

    def __str__(self) -> str:
        return self.message

    def __reduce__(self) -> tuple[object, ...]:
        """Processes send errors to each other: pickle would call the class with the message alone."""
        return (_rebuild, (type(self), self.__dict__, self.args))


def _rebuild(kind: type[KtrialError], attributes: dict[str, object], args: tuple[object, ...]) -> KtrialError:
    error = kind.__new__(kind, *args)
    error.args = args
    error.__dict__.update(attributes)
    return error


class Interrupted(KtrialError):
    """Ctrl-C or a signal ended what was going on; the hint says how it is taken up again."""

    exit_code = 130

    def __init__(self, what: str, *, hint: str = "") -> None:
        super().__init__(f"Interrupted: {what}", hint=hint)
