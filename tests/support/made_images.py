"""Kernel-like images of a few C functions: linked where kernels lie, with the symbols that linkers write."""

import hashlib
import subprocess
from pathlib import Path

from ktrial.model.kernel import Build, Kernel, NewOption, Origin

_FLAGS = (
    "-O2",
    "-mcmodel=kernel",
    "-fno-pie",
    "-fno-pic",
    "-ffreestanding",
    "-fno-asynchronous-unwind-tables",
)
_LINK = (
    "-nostdlib",
    "-static",
    "-no-pie",
    "-Wl,-Ttext=0xffffffff81000000",
    "-Wl,--build-id=0x{id}",
    "-Wl,-e,0",
)
CODE = """\
const char linux_banner[] = "Linux version 6.1.7 (a@b) #1 SMP Mon Jan 1 00:00:00 UTC 2026";
__attribute__((section(".note.Xen"), used, aligned(4)))
static const struct {{ int name_size, size, type; char name[4]; unsigned long long page; }} xen = {{
    4, 8, 3, "Xen", 1
}};
int slice = 3;
static const char *volatile said;
__attribute__((noinline)) int pick(int task) {{ return task * slice; }}
__attribute__((noinline)) int wake(int task) {{ said = "woken"; return pick(task) + {waking}; }}
{inserted}
__attribute__((noinline)) int fork_one(int task) {{ said = "forked"; return wake(task) ^ pick(task + 1); }}
int (*const table[])(int) = {{ pick, wake, fork_one }};
int _start(int number) {{ said = linux_banner; return table[number](slice); }}
"""


def image(directory: Path, code: str, build_id: str = "aa") -> Path:
    """Compile and link it; the file."""
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "image.c").write_text(code)
    link = [word.format(id=build_id) for word in _LINK]
    made = directory / "vmlinux"
    subprocess.run(["gcc", *_FLAGS, *link, "-o", made, directory / "image.c"], check=True)
    return made


def a_kernel_of(
    directory: Path,
    name: str,
    *,
    waking: int = 1,
    inserted: str = "",
    slice_: int = 3,
    build_id: str = "aa",
    stamp: str = "Jan 1 00:00:00 UTC 2026",
    options: tuple[NewOption, ...] = (),
    release: str = "6.1.7",
    build: Build | None = None,
) -> Kernel:
    """As a study builds it, with its image."""
    code = CODE.format(waking=waking, inserted=inserted)
    code = code.replace("slice = 3", f"slice = {slice_}").replace("Jan 1 00:00:00 UTC 2026", stamp)
    code = code.replace("Linux version 6.1.7 ", f"Linux version {release} ")
    vmlinux = image(directory / name, code, build_id)
    build = build or Build(source="/linux", options={"CONFIG_NAME": name})
    return Kernel(
        name=build.name,
        release=release,
        origin=Origin(provider="build", source="/linux", build=build, new_options=options),
        digest=hashlib.sha256(vmlinux.read_bytes() + name.encode()).hexdigest(),
        image=vmlinux,
        vmlinux=vmlinux,
    )


def with_module(kernel: Kernel, directory: Path, code: str, name: str = "demo") -> Kernel:
    """The kernel with one module of that C code, as `make modules_install` would place it."""
    place = directory / "lib" / "modules" / kernel.release / "kernel" / "drivers"
    place.mkdir(parents=True)
    source = place / f"{name}.c"
    mark = (
        f'__attribute__((section(".modinfo"), used)) static const char m[] = "vermagic={kernel.release} SMP";'
    )
    source.write_text(f"{code}\n{mark}\n")
    subprocess.run(["gcc", *_FLAGS, "-c", "-o", source.with_suffix(".ko"), source], check=True)
    source.unlink()
    digest = hashlib.sha256(source.with_suffix(".ko").read_bytes() + kernel.digest.encode()).hexdigest()
    return kernel.model_copy(update={"modules": place.parents[1], "digest": digest})
