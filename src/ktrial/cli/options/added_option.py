"""Give a command one more option, which is in force around all that the command does."""

import inspect
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import wraps
from typing import Any


def with_added(
    command: Callable[..., None],
    name: str,
    annotation: object,
    around: Callable[[Any], AbstractContextManager[object]],
) -> Callable[..., None]:
    """The command with the keyword `name`, None unless it is given; `around` is entered with its value."""

    @wraps(command)
    def performed(*arguments: Any, **options: Any) -> None:
        with around(options.pop(name, None)):
            command(*arguments, **options)

    own = inspect.signature(command, eval_str=True)
    kind = inspect.Parameter.KEYWORD_ONLY
    option = inspect.Parameter(name, kind, default=None, annotation=annotation)
    parameters = [one.replace(kind=kind) for one in own.parameters.values()]
    performed.__signature__ = own.replace(parameters=[*parameters, option])  # type: ignore[attr-defined]
    performed.__annotations__ = {one.name: one.annotation for one in [*parameters, option]}
    return performed
