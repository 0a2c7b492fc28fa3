"""Building a kernel: compilers, many short processes, the page cache."""

from ktrial.workloads.adapter import (
    PROLOGUE,
    SHELL,
    InstalledProgram,
    Program,
    Settings,
    choice,
    described,
    less,
    number,
    whole,
    word,
)

_SCRIPT = (
    PROLOGUE
    + """
[ -f "$1/Kbuild" ] || fail "there is no kernel source in '$1': name it, source = \\"/usr/src/linux-6.12\\""
cc --version | head -n 1
quietly() { "$@" >"$scratch/log" 2>&1 || { tail -n 20 "$scratch/log" >&2; exit 1; }; }
quietly make -C "$1" O="$scratch/build" "$2"
sync
before=$(date +%s.%N)
quietly make -C "$1" O="$scratch/build" -j "$3" "$4"
after=$(date +%s.%N)
echo "from $before to $after"
"""
)


def _arguments(settings: Settings) -> tuple[str, ...]:
    names = ("source", "configuration", "jobs", "target")
    return ("-c", _SCRIPT, "kernel-build", *(str(settings[name]) for name in names))


def _read(output: str, _settings: Settings) -> dict[str, float]:
    before, after = (number(pattern, output) for pattern in (r"^from ([0-9.]+)", r" to ([0-9.]+)$"))
    return {"time": after - before}


WORKLOAD = InstalledProgram(
    described(
        "kernel-build",
        "a kernel's build, in seconds",
        "Configures the kernel source in `source` in a scratch directory below /tmp, and builds it there "
        "with `jobs` jobs. The number is the time of the build alone.",
        (less("time", "s"),),
        (
            word(
                "source", "directory of a kernel's source, as clean as after make mrproper", "/usr/src/linux"
            ),
            choice("configuration", "which", "tinyconfig", "defconfig", "allnoconfig"),
            whole("jobs", "at once", 2, high=4096),
            word("target", "what is built", "vmlinux"),
        ),
        "the kernel's own Makefile",
    ),
    SHELL,
    _arguments,
    _read,
    others=(Program("make", "make"), Program("cc", "gcc", version_pattern=r"^(cc .*)")),
)
