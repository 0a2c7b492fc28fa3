"""Profiles for unit tests, made with as few words as a test needs."""

from collections.abc import Mapping

from ktrial.model.kernel_profile import Profile
from ktrial.model.profile import (
    FunctionCount,
    OperationCounts,
    PageCount,
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
