"""The answer of a search as files that are installed, each setting with its effect; and their undoing."""

import json
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ktrial.format import number_format
from ktrial.format.sanitize import one_line
from ktrial.installation import VERSION
from ktrial.knobs.catalogue import lenient_reference
from ktrial.model.comparison import Comparison
from ktrial.model.study import Study
from ktrial.model.tuning import Configuration, Effect, Tuned
from ktrial.studyfile.errors import SearchFailed
from ktrial.studyfile.search import BOOT, KERNEL, OPTION

_SYSCTL = "/proc/sys/"
_EXECUTABLE = 0o755


@dataclass(frozen=True)
class Answer:
    """What a search says is to be set."""

    study: str
    configuration: Configuration
    """Dimension → value."""
    in_force: dict[str, str]
    """The same, as read back while it was measured."""
    defaults: dict[str, str]
    """What was there before."""
    effects: dict[str, str]
    """Each setting's own effect, in words."""
    gain: str
    """What all of it does, as confirmed."""
    release: str = ""
    """The kernel that it was measured on."""
    paths: dict[str, str] = field(default_factory=dict)
    """Of those that are set at run time: where."""
    back: dict[str, tuple[str, str]] = field(default_factory=dict)
    """Of those whose old value cannot be written: the file and the value that bring it back."""

    @property
    def sysctls(self) -> dict[str, str]:
        """Name, as sysctl(8) has it → value."""
        return {
            dotted(path): self.configuration[name]
            for name, path in self.paths.items()
            if path.startswith(_SYSCTL)
        }

    @property
    def files(self) -> dict[str, str]:
        """Path below /sys → value."""
        return {
            path: self.configuration[name]
            for name, path in self.paths.items()
            if not path.startswith(_SYSCTL)
        }

    @property
    def parameters(self) -> tuple[str, ...]:
        """For the kernel's command line."""
        parameters = []
        for name, value in self.configuration.items():
            bare = name.removeprefix(BOOT)
            if name.startswith(BOOT) and value:
                parameters.append(bare if value == bare else f"{bare}={value}")
        return tuple(parameters)

    @property
    def kernel(self) -> str:
        """The kernel to boot; empty where none was chosen."""
        return self.configuration.get(KERNEL, "")

    @property
    def options(self) -> dict[str, str]:
        """Configuration options of the kernel's build."""
        return {
            f"CONFIG_{name.removeprefix(OPTION)}": value
            for name, value in self.configuration.items()
            if name.startswith(OPTION)
        }


def answer_of(study: Study, tuned: Tuned, in_force: Mapping[str, str], release: str = "") -> Answer | None:
    """The answer; None where the search found nothing that holds. `release`: where it was measured."""
    configuration = tuned.confirmed
    if not configuration:
        return None
    space = tuned.space
    elsewhere = (BOOT, OPTION)
    return Answer(
        study=study.name,
        configuration=dict(configuration),
        in_force=dict(in_force),
        defaults={name: space[name].default for name in configuration},
        effects=_effects(tuned),
        gain=confirmed_gain(tuned),
        release=release,
        paths={
            name: lenient_reference(name).path_in(release)
            for name in configuration
            if name != KERNEL and not name.startswith(elsewhere)
        },
        back={
            name: (lenient_reference(back[0]).path_in(release), back[1])
            for name in configuration
            if (back := space[name].back)
        },
    )


def confirmed_gain(tuned: Tuned) -> str:
    """`rps +12.00 % (95 %: +10.00 … +14.00)`, for each comparison of the confirmation."""
    return "; ".join(
        _plain(
            f"{comparison.metric} {number_format.change(comparison.ratio)} "
            f"({comparison.no_interval or _of_95(comparison)})"
        )
        for comparison in tuned.comparisons
        if comparison.ratio is not None
    )


def _of_95(comparison: Comparison) -> str:
    return f"95 %: {number_format.interval(comparison.low, comparison.high)} %"


def effect_in_words(effect: Effect, metric: str) -> str:
    """`rps +12.00 % with it (95 %: …)`; without an interval where nobody has measured one."""
    change = f"{metric} {_plain(number_format.change(effect.ratio))} with it"
    if interval := _plain(number_format.interval(effect.low, effect.high)):
        return f"{change} (95 %: {interval} %)"
    return f"{change} ({'one run without it' if effect.runs == 1 else 'expected, by all runs of the search'})"


def _effects(tuned: Tuned) -> dict[str, str]:
    metric = tuned.goal.objectives[0].metric
    return {name: effect_in_words(effect, metric) for effect in tuned.kept for name in effect.names}


def dotted(path: str) -> str:
    """`/proc/sys/net/ipv4/conf/eth0.1/mtu` → `net.ipv4.conf.eth0/1.mtu` (sysctl.d(5))."""
    return path.removeprefix(_SYSCTL).translate(str.maketrans("./", "/."))


def write_answer(answer: Answer, directory: Path) -> tuple[Path, ...]:
    """Write the files that the answer needs, and `undo.sh`, `answer.json`. Raises SearchFailed."""
    directory = directory.expanduser().absolute()
    written = []
    try:
        for name, text in texts(answer).items():
            path = directory / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
            if path.suffix == ".sh":
                path.chmod(_EXECUTABLE)
            written.append(path)
    except OSError as error:
        raise SearchFailed(
            f"The answer cannot be written to {directory}: {error.strerror}.",
            hint="name another directory: --answer DIR",
        ) from error
    return tuple(written)


def texts(answer: Answer) -> dict[str, str]:
    """Name of each file, relative to the answer's directory → its text."""
    texts_by_name: dict[str, str] = {}
    if answer.sysctls:
        texts_by_name[_sysctl_file(answer)] = _sysctl(answer)
    if answer.files:
        texts_by_name[_tmpfiles_file(answer)] = _tmpfiles(answer)
    if answer.kernel:
        texts_by_name["kernel"] = f"{answer.kernel}\n"
    if answer.parameters:
        texts_by_name["kernel-command-line"] = f"{' '.join(answer.parameters)}\n"
    if answer.options:
        texts_by_name["kernel.config"] = "".join(f"{key}={value}\n" for key, value in answer.options.items())
    if _has_profile(answer):
        texts_by_name[f"tuned/{answer.study}/tuned.conf"] = _tuned(answer)
    texts_by_name["undo.sh"] = _undo(answer)
    texts_by_name["answer.json"] = (
        json.dumps(vars(answer) | {"ktrial": VERSION}, indent=2, ensure_ascii=False) + "\n"
    )
    return texts_by_name


def _head(answer: Answer, install: str) -> list[str]:
    """What each file begins with."""
    where = f" on {answer.release}" if answer.release else ""
    return [
        f"# ktrial tune, {one_line(answer.study)}{where}: {answer.gain}",
        "# Measured there and then; whether it still holds: ktrial tune revalidate",
        f"# {install}",
    ]


def _comments(answer: Answer, name: str) -> list[str]:
    before = answer.defaults[name] or "not given"
    effect = answer.effects.get(name, "its own effect was not measured")
    return ["", f"# {name}: {effect}; it was {before}"]


def _sysctl(answer: Answer) -> str:
    lines = _head(answer, "Install it in /etc/sysctl.d; in force at once: sysctl --system")
    for name, path in answer.paths.items():
        if path.startswith(_SYSCTL):
            lines += [*_comments(answer, name), f"{dotted(path)} = {answer.configuration[name]}"]
    return _text(lines)


def _tmpfiles(answer: Answer) -> str:
    install = "Install it in /etc/tmpfiles.d; in force at once: systemd-tmpfiles --create"
    lines = _head(answer, install)
    for name, path in answer.paths.items():
        if not path.startswith(_SYSCTL):
            # tmpfiles.d(5): % begins a specifier.
            value = answer.configuration[name].replace("%", "%%")
            lines += [*_comments(answer, name), f"w {path} - - - - {value}"]
    return _text(lines)


def _tuned(answer: Answer) -> str:
    """TuneD's profile: tuned-main.conf(5), and its plug-ins sysctl, sysfs and bootloader.

    TuneD looks for it where its option `profile_dirs` says since 2.23 (its commit 6d3aa94), and nowhere else.
    """
    install = (
        "Install the directory in /etc/tuned/profiles (TuneD before 2.23: in /etc/tuned); "
        f"then: tuned-adm profile {answer.study}"
    )
    lines = [*_head(answer, install), "[main]", f"summary=ktrial tune: {answer.gain}"]
    if answer.sysctls:
        lines += ["", "[sysctl]", *(f"{name}={value}" for name, value in answer.sysctls.items())]
    if answer.files:
        lines += ["", "[sysfs]", *(f"{path}={value}" for path, value in answer.files.items())]
    if answer.parameters:
        lines += ["", "[bootloader]", f"cmdline_ktrial=+{' '.join(answer.parameters)}"]
    return _text(lines)


def _undo(answer: Answer) -> str:
    """Puts back what was there when the search began, the last setting first.

    Files go first, and a value that cannot be put back (a knob that this kernel does not have) stops nothing:
    what is left is told, also by the exit status.
    """
    lines = ["#!/bin/sh", *_head(answer, "Run it as root: it puts back what was there before."), "left=0"]
    if _has_profile(answer):
        lines += _without_profile(answer)
    files = {_sysctl_file(answer): answer.sysctls, _tmpfiles_file(answer): answer.files}
    if installed := [f"/etc/{file}" for file, settings in files.items() if settings]:
        lines.append(f"rm -f {' '.join(map(shlex.quote, installed))} || left=1")
    for name in reversed(answer.paths):
        path, value = answer.back.get(name, (answer.paths[name], answer.defaults[name]))
        lines.append(f"printf '%s\\n' {shlex.quote(value)} > {shlex.quote(path)} || left=1")
    options = (f"{key}={value}" for key, value in answer.options.items())
    if elsewhere := " ".join((*answer.parameters, *options)):
        lines.append(f"echo {shlex.quote(f'by hand, and with a boot: take back {elsewhere}')}")
    if answer.kernel:
        lines.append(f"echo {shlex.quote(f'by hand: boot {answer.defaults[KERNEL]} again')}")
    lines += ['[ $left = 0 ] || echo "not all of it is back: see above" >&2', "exit $left"]
    return _text(lines)


def _has_profile(answer: Answer) -> bool:
    return bool(answer.sysctls or answer.files or answer.parameters)


def _without_profile(answer: Answer) -> list[str]:
    """TuneD's profile goes first: TuneD would set its values again, and writes old ones when it lets go.

    Where its daemon runs, `off` also takes the boot parameters back. Without it TuneD switches nothing off,
    and sets what is preset when it starts again; what it wrote for the boot loader stays there.
    """
    quoted = shlex.quote(answer.study)
    active = "command -v tuned-adm >/dev/null && tuned-adm active 2>/dev/null"
    told = shlex.quote(
        "TuneD has no profile now; another one: tuned-adm profile NAME, or tuned-adm auto_profile"
    )
    lines = [
        f"if {active} | tr ' ' '\\n' | grep -qxF -- {quoted}; then",
        "    tuned-adm off || : > /etc/tuned/active_profile || left=1",
        f"    echo {told}",
        "fi",
    ]
    if answer.parameters:
        boot = shlex.quote(
            "by hand: TuneD still has boot parameters: empty TUNED_BOOT_CMDLINE in /etc/tuned/bootcmdline, "
            "and write the configuration of the boot loader anew (update-grub, grub2-mkconfig)"
        )
        lines += [
            f"if grep -qsF -- {shlex.quote(' '.join(answer.parameters))} /etc/tuned/bootcmdline; then",
            f"    echo {boot}",
            "fi",
        ]
    return [*lines, f"rm -rf /etc/tuned/{quoted} /etc/tuned/profiles/{quoted} || left=1"]


def _sysctl_file(answer: Answer) -> str:
    return f"sysctl.d/99-{answer.study}.conf"


def _tmpfiles_file(answer: Answer) -> str:
    return f"tmpfiles.d/{answer.study}.conf"


def _text(lines: Iterable[str]) -> str:
    return "\n".join(lines) + "\n"


def _plain(text: str) -> str:
    """For files that other programs read."""
    return text.replace("\u00a0", " ").replace("\u2212", "-").replace("…", "to")
