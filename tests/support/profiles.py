"""Profiles for unit tests, made with as few words as a test needs."""

import json
import lzma
from collections.abc import Mapping
from fractions import Fraction

from tests.support.places import DATA as _DATA

from ktrial.model.profile import (
    CallNode,
    FunctionCount,
    FunctionFiles,
    OperationCounts,
    PageCount,
    Profile,
    ProgramCount,
    RegionCounts,
    StringCounts,
)


def a_profile(
    functions: Mapping[tuple[str, str], int],
    *,
    kernel: str = "debian:6.1",
    program: int = 0,
    operations: int = 10,
    bundle: int = 1,
    string_bytes: Mapping[tuple[str, str], int] | None = None,
) -> Profile:
    """A profile of functions (name and module → instructions in the region) and a user program."""
    whole = sum(functions.values()) + program
    moved = string_bytes or {}
    region = RegionCounts(
        whole=True,
        instructions=whole,
        marks=0,
        strings=StringCounts(bytes=sum(moved.values())),
        functions=tuple(
            FunctionCount(
                symbol=name,
                module=module,
                instructions=count,
                entered=operations,
                strings=StringCounts(bytes=moved.get((name, module), 0)),
            )
            for (name, module), count in functions.items()
        ),
        pages=(PageCount(address=4096, checksum=1, instructions=program),),
        operations=OperationCounts(
            count=operations,
            total=whole,
            minimum=whole // operations,
            maximum=whole // operations,
            median=whole / operations,
        ),
    )
    return Profile(
        kernel=kernel,
        workload="fork",
        operations=operations * bundle,
        region=region,
        programs=(ProgramCount(program="work", instructions=program),),
    )


def with_calls(
    stacks: Mapping[tuple[str, ...], Fraction], *, kernel: str = "debian:6.1", operations: int = 10
) -> Profile:
    """A profile with a tree of calls: stack, the outermost function first → instructions in the region."""
    rows: dict[str, int] = {}
    nodes = [CallNode(parent=0, function=-1, instructions=0, entered=0)] * 2
    places: dict[tuple[str, ...], int] = {(): 0}
    for path in sorted({stack[:end] for stack in stacks for end in range(1, len(stack) + 1)}):
        places[path] = len(nodes)
        function = rows.setdefault(path[-1], len(rows))
        own = int(stacks.get(path, 0))
        nodes.append(CallNode(parent=places[path[:-1]], function=function, instructions=own, entered=1))
    own_counts = dict.fromkeys(rows, 0)
    for stack, count in stacks.items():
        own_counts[stack[-1]] += int(count)
    plain = a_profile({(name, ""): own_counts[name] for name in rows}, kernel=kernel, operations=operations)
    return plain.model_copy(update={"region": plain.region.model_copy(update={"nodes": tuple(nodes)})})


# Profiles of real kernels (Debian's cloud kernels, QEMU 7.2) in tests/data, without each operation's count.
#
# They are what `ktrial.experiment.profile.profile` returned, and `ktrial.kernels.symbols` of the kernel, as
# far as that speaks of functions which ran in one of the two kernels.


def real_profile(workload: str, kernel: str) -> tuple[Profile, FunctionFiles]:
    """`fork` or `pipe`, of `5.10` or `6.12`."""
    kept = json.loads(lzma.decompress((_DATA / f"{workload}-{kernel}.json.xz").read_bytes()))
    return Profile.model_validate(kept["profile"]), FunctionFiles.model_validate(kept["files"])
