"""What `objdump -dl` says of each instruction of a function: debugging information, read by others."""

import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

_FILE = re.compile(r"(\S+):(\d+)(?: \(discriminator \d+\))?$")
_FUNCTION = re.compile(r"(\w[\w.]*)\(\):$")
_INSTRUCTION = re.compile(r" *([0-9a-f]+):\t[0-9a-f ]+\t\S")


@dataclass(frozen=True)
class Instruction:
    """One instruction, and the source that it was made of."""

    address: int
    file: str
    """Without its directory."""
    line: int
    function: str
    """The innermost one: inlined, or the function itself."""


def disassembled(program: Path, function: str, *options: str) -> tuple[Instruction, ...]:
    """The instructions of the function, by address."""
    command = ["objdump", "-dl", *(options or (f"--disassemble={function}",)), str(program)]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    file, line, innermost = "", 0, ""
    code: list[Instruction] = []
    for row in text.splitlines():
        if named := _FILE.match(row):
            file, line = Path(named[1]).name, int(named[2])
        elif named := _FUNCTION.match(row):
            innermost = named[1]
        elif named := _INSTRUCTION.match(row):
            code.append(Instruction(int(named[1], 16), file, line, innermost))
    return tuple(code)
