"""Tours: C programs that come with ktrial, for functions of the kernel that no other workload runs.

Each goes through one area of the kernel and makes a call of each kind that it has, also calls that fail. It
measures nothing in particular: it tells whether a changed function runs at all, and what it then costs. It
runs in guests alone, and says so anywhere else; it is compiled here when it is wanted.
"""

from pathlib import Path

from ktrial.model.workload import WorkloadUse
from ktrial.workloads.c_programs import SUFFIX, program_from
from ktrial.workloads.errors import BadWorkload

PREFIX = "tour-"
_PLACE = Path(__file__).parent
_COMMON = "common.h"

AREAS = tuple(sorted(path.stem for path in _PLACE.glob(f"*{SUFFIX}")))
"""What there is a tour of: `ext4`, `sockets`."""
NAMES = tuple(f"{PREFIX}{area}" for area in AREAS)
"""The tours, as workloads are named."""


def is_tour(name: str) -> bool:
    """Whether a workload's name can only be a tour's."""
    return name.startswith(PREFIX)


def tour(name: str) -> WorkloadUse:
    """The workload that makes this tour once. Raises BadWorkload, and WorkloadError without a compiler."""
    if name not in NAMES:
        raise BadWorkload(f"There is no tour {name}.", hint=f"there are {', '.join(NAMES)}")
    source = _PLACE / f"{name.removeprefix(PREFIX)}{SUFFIX}"
    content = (_PLACE / _COMMON).read_bytes() + source.read_bytes()
    return program_from(Path(f"{name}{SUFFIX}"), content)


def tours() -> tuple[WorkloadUse, ...]:
    """All of them. Raises WorkloadError without a compiler."""
    return tuple(map(tour, NAMES))
