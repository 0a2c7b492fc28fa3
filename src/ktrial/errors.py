"""The root of the tree. The error's text is its class's docstring, filled in with the facts."""

import inspect
from typing import TYPE_CHECKING, ClassVar

from ktrial.moved import moved_error
from ktrial.package_names import on_this_system


class KtrialError(Exception):
    """{what}"""

    hint: ClassVar[str] = ""
    """What to do next; a template like the docstring. Empty where there is nothing sensible to say."""
    exit_code: ClassVar[int] = 1

    def __init__(self, **facts: object) -> None:
        self.facts = facts
        super().__init__(self.message)

    @property
    def message(self) -> str:
        """The class's docstring up to its first blank line, on one line, with the facts filled in."""
        text = inspect.cleandoc(type(self).__doc__ or "").split("\n\n")[0].replace("\n", " ")
        return text.format(**self.facts)

    @property
    def advice(self) -> str:
        """The hint with the facts filled in; empty where there is none. A fact named `hint` replaces it.

        Packages have the names that this distribution gives them.
        """
        hint = str(self.facts["hint"]) if "hint" in self.facts else self.hint.format(**self.facts)
        return on_this_system(hint)

    def __str__(self) -> str:
        return self.message

    def __reduce__(self) -> tuple[object, ...]:
        return (_rebuild, (type(self), self.facts))


def _rebuild(kind: type[KtrialError], facts: dict[str, object]) -> KtrialError:
    return kind(**facts)


class Interrupted(KtrialError):
    """Interrupted: {what}"""

    hint = "{resume}"
    exit_code = 130


if not TYPE_CHECKING:  # to mypy, a name that is not here is a mistake

    def __getattr__(name: str) -> type[Exception]:
        """An error that was here before the rooms had errors of their own."""
        if name.startswith("_"):
            raise AttributeError(f"module 'ktrial.errors' has no attribute {name!r}")
        return moved_error(name)
