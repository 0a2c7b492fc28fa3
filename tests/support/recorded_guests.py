"""Guests that ran once, really: what each QEMU wrote, kept, and played to the exact machine again.

A recording holds, of each boot and each trial, the bytes of the guest's frames, its console, what the plugin
counted and how QEMU ended. Whatever ktrial makes of that is made anew: frames are decoded, counts are read,
outcomes judged, studies analysed and rendered. `record_guests.py` makes them, tests/data/guests has them.
"""

import contextlib
import json
import lzma
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Self
from unittest import mock

from ktrial.experiment.resources import Resources, default_resources
from ktrial.file_digests import digest_of_file, sealed
from ktrial.kernels import Progress as Fetching
from ktrial.machines import PreparationProgress, guest_programs
from ktrial.machines.exact import ExactMachine, InstrumentedTarget
from ktrial.machines.qemu import program
from ktrial.machines.qemu import snapshot as exact_boot
from ktrial.machines.qemu import snapshot as target
from ktrial.machines.qemu.boot import BootFiles
from ktrial.machines.qemu.frame_log import FrameLog
from ktrial.machines.qemu.plugin import PluginBuild
from ktrial.machines.qemu.process import Children, memory_file
from ktrial.machines.qemu.program import Qemu
from ktrial.machines.qemu.snapshot import SnapshotSetup, SnapshotTarget
from ktrial.machines.qemu.snapshot_cache import About, OpenSnapshot, SnapshotCache
from ktrial.machines.qemu.watchdog import StopReason, Watcher, WatchResult
from ktrial.model.base import Model, digest
from ktrial.model.kernel import Kernel
from ktrial.model.machine import NO_FILES, Boot, FileSet, MachineIdentity
from ktrial.model.references import KernelRef
from ktrial.model.workload import CountedBy, Mode

_NOWHERE = Path("/nowhere/vmlinuz")
_NO_FILES = BootFiles(_NOWHERE, "", ())
_KALLSYMS = b"ffffffff81000000 T _text\n"
"""The plugin's counts have their names already."""
_UNASKED = ("watch", "sample")
"""Of a step: which counters are read around it and meanwhile. Who adds a monitor need not record anew."""


class QemuRun(Model):
    """One QEMU, from its start to its end."""

    asked: str
    """A digest of the boot and of the steps."""
    frames: str
    """Bytes, as Latin-1."""
    console: str
    said: str
    counts: str
    """What the plugin wrote; empty where it was not loaded."""
    stop: StopReason
    status: int
    reset: bool
    switched_off: bool
    identity: MachineIdentity

    @property
    def ending(self) -> WatchResult:
        """As the watcher told it."""
        return WatchResult(self.stop, self.status, self.reset, self.switched_off)


class Recording(Model):
    """One golden guest: all its QEMUs."""

    made_with: dict[str, str]
    """Digests of what the numbers depend on: guest programs, QEMU, kernels, modules that are loaded."""
    kernels: tuple[Kernel, ...]
    """Without their files."""
    runs: tuple[QemuRun, ...]

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read what `save` wrote."""
        return cls.model_validate_json(lzma.decompress(path.read_bytes()))

    def save(self, path: Path) -> None:
        """Write it, compressed."""
        text = json.dumps(self.model_dump(mode="json"), separators=(",", ":"), sort_keys=True)
        path.write_bytes(lzma.compress(text.encode(), preset=9 | lzma.PRESET_EXTREME))


def made_with(kernels: Iterable[Kernel]) -> dict[str, str]:
    """What the numbers of guests depend on here."""
    files = guest_programs.programs(guest_programs.directory())
    programs = {path.name: digest_of_file(path) for path in (*files.values(), guest_programs.lockstep())}
    return {"qemu": program.find().build, **programs, **{kernel.name: kernel.digest for kernel in kernels}}


def asked(setup: SnapshotSetup, plan: bytes | None = None, quiet: bool = True) -> str:
    """What a QEMU was asked: names and numbers, no path of this machine."""
    boot = setup.boot
    sizes = (boot.memory_mib, boot.initrd_padding)
    carried = [name for name in ("modules", "files") if getattr(boot, name)]
    system = [boot.kernel.name, boot.parameters, sizes, carried, quiet]
    carried += ["awaits_files"] if boot.awaits_files else []
    steps = json.loads(plan)["steps"] if plan else []
    plain = [{key: one for key, one in step.items() if key not in _UNASKED} for step in steps]
    counting = [word for word in ",".join(setup.plugin).split(",") if word.endswith("=on")]
    return digest([system, plain, counting, bool(setup.plugin)])


@dataclass
class Recorder:
    """Notes what QEMUs write while `recording` is on."""

    runs: dict[str, QemuRun] = field(default_factory=dict)
    kernels: dict[str, Kernel] = field(default_factory=dict)
    modules: dict[str, str] = field(default_factory=dict)
    """Digest of each that is carried into a guest: another version's kernel can have made it."""

    @contextlib.contextmanager
    def recording(self) -> Iterator[Self]:
        """All that the exact machine starts meanwhile is recorded."""
        with (
            mock.patch.object(target, "restored", self._noting(exact_boot.restored)),
            mock.patch.object(exact_boot, "switched_on", self._noting(exact_boot.switched_on)),
            mock.patch.object(target, "Watcher", _NotingWatcher),
            mock.patch.object(exact_boot, "Watcher", _NotingWatcher),
        ):
            yield self

    def recorded(self) -> Recording:
        """What is to be kept."""
        return Recording(
            made_with=made_with(self.kernels.values()) | self.modules,
            kernels=tuple(_without_files(kernel) for kernel in self.kernels.values()),
            runs=tuple(self.runs.values()),
        )

    def _noting(self, start: Any) -> Any:
        @contextlib.contextmanager
        def noted(
            setup: SnapshotSetup, children: Children, source: Any, plan: bytes | None = None, **more: bool
        ) -> Iterator[Any]:
            process = None
            written: dict[str, str] = {}
            try:
                with start(setup, children, source, plan, **more) as process:
                    try:
                        yield process
                    finally:
                        written["frames"] = process.frame_bytes().decode("latin-1")
                        written["console"] = process.console_text()
                        written["said"] = process.messages()
            finally:
                if ending := _NotingWatcher.endings.pop(process, None):
                    self._keep(setup, asked(setup, plan, **more), written, ending)

        return noted

    def _keep(self, setup: SnapshotSetup, name: str, written: dict[str, str], ending: WatchResult) -> None:
        self.kernels[setup.boot.kernel.name] = setup.boot.kernel
        self.modules |= {path.name: digest_of_file(path) for path in setup.boot.modules}
        out = _counts_of(setup)
        run = QemuRun(
            asked=name,
            counts=out.read_text() if out else "",
            stop=ending.stop,
            status=ending.status,
            reset=ending.reset,
            switched_off=ending.switched_off,
            identity=setup.identity,
            **written,
        )
        first = self.runs.setdefault(name, run)
        other = [key for key, said in run.model_dump().items() if getattr(first, key) != said]
        assert first == run, f"the same guest, asked the same, has other {', '.join(other)}"


class _NotingWatcher(Watcher):
    endings: dict[Any, WatchResult] = {}  # noqa: RUF012

    def __init__(self, process: Any, limits: Any) -> None:
        super().__init__(process, limits)
        self._noted = process

    def watch(self) -> WatchResult:
        ending = super().watch()
        self.endings[self._noted] = ending
        return ending


def _counts_of(setup: SnapshotSetup) -> Path | None:
    words = ",".join(setup.plugin).split(",")
    return next((Path(word.removeprefix("out=")) for word in words if word.startswith("out=")), None)


def _without_files(kernel: Kernel) -> Kernel:
    gone = dict.fromkeys(("vmlinux", "config", "modules"))
    return kernel.model_copy(update={**gone, "image": _NOWHERE, "vmlinux_reason": "recorded"})


class ReplayedMachine(ExactMachine):
    """The exact machine, whose QEMUs are those of a recording. `start` and `prepare` boot nothing."""

    def __init__(self, recording: Recording, count: CountedBy | None = None) -> None:
        super().__init__(count=count)
        self._recording = recording
        self._count = count

    @property
    def mode(self) -> Mode:
        return Mode.EXACT_CLOCK if self._count is CountedBy.CLOCK else Mode.EXACT_PLUGIN

    def count_by(self, count: CountedBy | None) -> None:
        self._count = count

    def check(self) -> None:
        """Nothing is needed here."""

    def prepare(self, boot: Boot, progress: PreparationProgress) -> None:
        """Raises GuestEnded where the recorded boot failed."""
        setup, children = self._replayed(boot), Children(self.name)
        with (
            _replaying(self._recording),
            memory_file("ktrial-ram") as ram,
            exact_boot.booted(setup, children, ram, progress),
        ):
            pass

    @contextlib.contextmanager
    def start(self, boot: Boot, carried: FileSet = NO_FILES) -> Iterator[SnapshotTarget]:
        if self.mode is Mode.EXACT_PLUGIN:
            with self.instrumented(boot, carried) as started:
                yield started
            return
        self.prepare(boot, print)
        with _replaying(self._recording):
            yield SnapshotTarget(self._replayed(boot), Children(self.name), _Present(self.name), "")

    @contextlib.contextmanager
    def instrumented(self, boot: Boot, carried: FileSet = NO_FILES) -> Iterator[InstrumentedTarget]:
        self.prepare(boot, print)
        build = PluginBuild(Path(__file__), 1)  # a file to take a digest of: nothing loads it
        with _replaying(self._recording):
            yield InstrumentedTarget(
                self._replayed(boot), Children(self.name), _Present(self.name), "", build
            )

    def _replayed(self, boot: Boot) -> SnapshotSetup:
        build = Qemu(Path("qemu"), (7, 2, 0), "recorded", digest="", firmware="")
        identity = MachineIdentity(machine=self.name, mode=self.mode)
        setup = SnapshotSetup(self.name, boot, build, _NO_FILES, {}, identity, Path("lockstep.so"))
        name = asked(setup)
        known = next((run.identity for run in self._recording.runs if run.asked == name), identity)
        return replace(setup, identity=known.model_copy(update={"mode": self.mode}))


class _Present(SnapshotCache):
    """Whatever snapshot is asked for is there."""

    def __init__(self, machine: str) -> None:
        super().__init__(Path("/nowhere"), 0, machine)

    @contextlib.contextmanager
    def open(self, name: str) -> Iterator[OpenSnapshot | None]:
        empty = {"ram_size": 0, "ram_digest": "", "state_size": 0, "state_digest": "", "created": 0.0}
        yield OpenSnapshot(About(key=name, facts={}, **empty), -1, b"")

    def note(self, name: str) -> bytes | None:
        return _KALLSYMS


@dataclass(frozen=True)
class _Process:
    run: QemuRun

    def reported(self) -> FrameLog:
        log = FrameLog()
        log.feed(self.run.frames.encode("latin-1"))
        return log

    def console_text(self) -> str:
        return self.run.console

    def messages(self) -> str:
        return self.run.said

    def kill(self) -> None:
        pass


class _Watcher:
    def __init__(self, process: _Process, _limits: object) -> None:
        self._process = process

    def resume(self) -> None:
        pass

    def watch(self) -> WatchResult:
        return self._process.run.ending


@contextlib.contextmanager
def _replaying(recording: Recording) -> Iterator[None]:
    runs = {run.asked: run for run in recording.runs}

    @contextlib.contextmanager
    def started(
        setup: SnapshotSetup, _children: Children, _source: object, plan: bytes | None = None, **more: bool
    ) -> Iterator[_Process]:
        run = runs.get(asked(setup, plan, **more))
        assert run, f"no recorded guest was asked this; record anew: {setup.boot.parameters} {plan!r}"
        out = _counts_of(setup)
        if out:
            out.write_text(run.counts)
        yield _Process(run)

    with (
        mock.patch.object(target, "restored", started),
        mock.patch.object(exact_boot, "switched_on", started),
        mock.patch.object(target, "Watcher", _Watcher),
        mock.patch.object(exact_boot, "Watcher", _Watcher),
    ):
        yield


def replayed_sources(recording: Recording, directory: Path) -> Resources:
    """The kernels of the recording, with symbols that are never looked at; all else is the usual."""
    known = {kernel.name: kernel for kernel in recording.kernels}

    def obtain(kernel: KernelRef, _progress: Fetching) -> Kernel:
        name = kernel.name
        place = directory / name.replace(":", "-")
        place.mkdir(parents=True, exist_ok=True)
        (place / "kallsyms").write_bytes(sealed(_KALLSYMS))
        # A kernel of which no more than a module was asked for is in no recording.
        booted = known.get(name) or recording.kernels[0].model_copy(update={"name": name})
        return booted.model_copy(update={"image": place / "vmlinuz"})

    def modules(_kernel: Kernel, names: Iterable[str]) -> tuple[Path, ...]:
        return tuple(Path(f"/modules/{name}.ko") for name in names)

    usual = default_resources()
    return Resources(obtain=obtain, modules=modules, workload=usual.workload, files=usual.files)
