"""stress-ng: one of its some three hundred stressors."""

from ktrial.workloads.adapter import (
    InstalledProgram,
    Program,
    Reported,
    Settings,
    described,
    more,
    whole,
    word,
)


def _arguments(settings: Settings) -> tuple[str, ...]:
    options = str(settings["options"]).split()
    return (
        *(f"--{settings['stressor']}", str(settings["instances"]), *options),
        # Guests have no /dev/stdout: a file of that name would be made.
        *("--timeout", f"{settings['time']}s", "--metrics", "--yaml", "/proc/self/fd/1"),
    )


WORKLOAD = InstalledProgram(
    described(
        "stress-ng",
        "a stressor of stress-ng",
        "Runs `instances` of a stressor for `time` seconds. The number is its bogo operations a second of "
        "real time: what one is, each stressor decides, and another version may decide otherwise.",
        (more("operations", "1/s"),),
        (
            word("stressor", "which: stress-ng --stressors", "cpu"),
            whole("instances", "how many at once", 1, high=4096),
            word("options", "further options, separated by blanks", ""),
            whole("time", "seconds", 10, high=86400),
        ),
        "https://github.com/ColinIanKing/stress-ng",
    ),
    Program("stress-ng", "stress-ng", version_pattern=r"(stress-ng, version \S+)"),
    _arguments,
    Reported("stress-ng-yaml", required=("operations",), of=lambda settings: str(settings["stressor"])),
)
