"""Where programs lie on the other machine."""

import posixpath
import shlex

from ktrial.machines.errors import MachineError
from ktrial.machines.ssh.connection import NAME, Connection
from ktrial.target import Run

_LOOKED_FOR = """P={path}; N={name}; IFS=:
for d in $P; do [ -f "$d/$N" ] && [ -x "$d/$N" ] && {{ printf '%s\\n' "$d/$N"; break; }}; done; :
"""


def argv_there(connection: Connection, run: Run) -> tuple[str, ...]:
    """The words of a command; a name without a slash is looked for in its PATH. Raises MachineError."""
    first = run.argv[0]
    if "/" in first:
        return run.argv
    path = run.environment.get("PATH", "/usr/bin:/bin")
    answer = connection.script(_LOOKED_FOR.format(path=shlex.quote(path), name=shlex.quote(first)))
    name = answer.decode(errors="replace").strip()
    if not posixpath.isabs(name):
        raise MachineError(machine=NAME, problem=f"{connection.host} has no program {first} in {path}")
    return (name, *run.argv[1:])
