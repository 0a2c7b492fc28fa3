"""Lines as programs, kernels and files of this system end them: with a line feed, and nothing else."""


def lines_of(text: str) -> list[str]:
    """The lines, without their ends (\\n or \\r\\n).

    str.splitlines also ends a line at a form feed, U+0085 and U+2028: these are what a line may hold, the
    name of a file or what a program prints.
    """
    lines = text.split("\n")
    if not lines[-1]:
        lines.pop()
    return [line.rstrip("\r") for line in lines]
