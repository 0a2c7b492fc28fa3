"""Debian's kernels, really: fetched through apt from the system's mirror, unpacked, resolved, and started."""

import hashlib
import os
import platform
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from tests.support.guests import ALL, versions

from ktrial.kernels import kernel_registry, silent
from ktrial.kernels.config import config_of
from ktrial.kernels.errors import FetchFailed, NoSuchRelease
from ktrial.kernels.image import has_pvh_entry
from ktrial.kernels.modules import builtin_names, module_names, resolve
from ktrial.kernels.packages.apt import Archive, PrivateApt, configured_sources
from ktrial.kernels.providers.debian import debian_archives
from ktrial.model.kernel import Kernel

pytestmark = pytest.mark.guest
MODULES = ("xfs", "btrfs", "virtio-net", "nf_tables", "null_blk", "dm-crypt")


@pytest.fixture(params=versions(*ALL), scope="module")
def kernel(request: pytest.FixtureRequest) -> Kernel:
    """From the user's own cache: downloaded on first use only."""
    return kernel_registry.add(str(request.param))


def test_a_kernel_has_all_its_parts(kernel: Kernel) -> None:
    assert kernel.release.startswith(kernel.name.partition(":")[2] + ".")
    assert kernel.release.endswith("-cloud-amd64")
    assert kernel.vmlinux is not None, kernel.vmlinux_reason
    assert has_pvh_entry(kernel.vmlinux.read_bytes())
    assert config_of(kernel).get("CONFIG_PVH") == "y"
    assert len(module_names(kernel)) > 500
    assert len(builtin_names(kernel)) > 50
    assert kernel.origin.suite
    assert kernel.origin.packages
    assert not (kernel.image.parent / "System.map").exists(), "Debian's is a stub"


@pytest.mark.parametrize("name", MODULES)
def test_modules_are_those_that_modprobe_would_load(kernel: Kernel, name: str) -> None:
    """All of modprobe's, in an order that suits it; more where a module has several softdep lines."""
    assert kernel.modules is not None
    modprobe = shutil.which("modprobe", path=os.environ["PATH"] + ":/usr/sbin:/sbin") or "modprobe"
    base = kernel.modules.parents[2]
    command = [modprobe, "-d", str(base), "-S", kernel.release, "--show-depends", name]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    expected = [plain(line.split()[1]) for line in printed.splitlines() if line.startswith("insmod")]
    files = resolve(kernel, [name])
    loaded = [plain(file) for file in files]
    assert set(expected) <= set(loaded)
    assert loaded[-1] == expected[-1]
    before: set[str] = set()
    for module in loaded:
        assert dependencies(kernel, module) <= before, f"{module} comes after what it needs"
        before.add(module)
    assert all(file.read_bytes()[:4] == b"\x7fELF" for file in files)


def plain(file: Path | str) -> str:
    return Path(file).name.partition(".ko")[0].replace("-", "_")


def dependencies(kernel: Kernel, module: str) -> set[str]:
    """What the module itself says that it needs (`depends=` of its .modinfo), less what is built in."""
    (file,) = [one for one in resolve(kernel, [module]) if plain(one) == module]
    start = (data := file.read_bytes()).index(b"depends=") + len(b"depends=")
    needed = {plain(one) for one in data[start : data.index(b"\0", start)].decode().split(",") if one}
    return needed & set(module_names(kernel))


def test_qemu_starts_the_extracted_vmlinux(kernel: Kernel) -> None:
    """Without an init it ends in a panic that names the release: all the way through the PVH entry."""
    command = ["qemu-system-x86_64", "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot"]
    command += [
        "-accel",
        "tcg",
        "-cpu",
        "max",
        "-m",
        "256M",
        "-serial",
        "stdio",
        "-kernel",
        str(kernel.vmlinux),
    ]
    command += [
        "-append",
        "console=ttyS0 panic=-1 nokaslr cryptomgr.notests tsc_early_khz=1000000 lpj=4000000",
    ]
    printed = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    assert f"Linux version {kernel.release} " in printed
    assert "Kernel panic - not syncing: VFS: Unable to mount root fs" in printed


ADD = "import sys; from ktrial.kernels import kernel_registry as k; print(k.add(sys.argv[1]).digest)"
STAGED = """
import sys, time
from ktrial.kernels import kernel_registry

def progress(what, done=0, total=0):
    if what.startswith("fetching the package") and total and "list" not in what:
        print(done, total, flush=True)

kernel_registry.add(sys.argv[1], progress=progress)
"""


@pytest.fixture(scope="module")
def empty_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A cache of its own; the package lists in it are fetched once for the tests of this module."""
    directory = tmp_path_factory.mktemp("cache")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KTRIAL_CACHE", str(directory))
        yield directory


def system_state() -> list[tuple[str, int, int]]:
    places = ("/var/lib/apt", "/var/cache/apt", "/var/lib/dpkg", "/etc/apt", "/boot", "/lib/modules")
    paths = (path for place in places for path in sorted(Path(place).rglob("*")))
    return [(str(path), path.lstat().st_size, path.lstat().st_mtime_ns) for path in paths]


@pytest.mark.nightly  # fetches a kernel; for each change: tests/unit/kernels/test_kernels_cache_processes.py
def test_nothing_of_the_system_is_touched_and_two_processes_fetch_once(empty_cache: Path) -> None:
    before = system_state()
    command = [sys.executable, "-c", ADD, "debian:6.1"]
    running = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    printed = [process.communicate()[0].strip() for process in running]
    assert [process.returncode for process in running] == [0, 0]
    assert printed[0] == printed[1]
    assert system_state() == before
    # Both know the same kernel, and it was fetched once: the second found it, and left no workspace.
    assert [kernel.digest for kernel in kernel_registry.all_kernels()] == printed[:1]
    assert list((empty_cache / "kernels" / "work").iterdir()) == []


@pytest.mark.nightly  # fetches a kernel; for each change: tests/unit/kernels/test_kernels_cache_processes.py
def test_a_download_killed_in_the_middle_is_no_kernel(empty_cache: Path, tmp_path: Path) -> None:
    slowly = tmp_path / "apt.conf"
    slowly.write_text('Acquire::http::Dl-Limit "4000"; Acquire::https::Dl-Limit "4000";')
    command = [sys.executable, "-c", STAGED, "debian:6.12"]
    environment = {**os.environ, "APT_CONFIG": str(slowly)}
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in iter(process.stdout.readline, ""):
            done, total = map(int, line.split())
            if 0 < done < total:
                break
        process.send_signal(signal.SIGKILL)
    assert process.returncode == -signal.SIGKILL
    assert 0 < done < total
    assert "debian:6.12" not in [kernel.name for kernel in kernel_registry.all_kernels()]
    kernel = kernel_registry.add("debian:6.12")
    assert kernel.vmlinux is not None
    assert list((empty_cache / "kernels" / "work").iterdir()) == []


@pytest.mark.nightly
def test_an_unknown_version_is_refused_with_what_the_mirror_has(empty_cache: Path) -> None:
    with pytest.raises((NoSuchRelease, FetchFailed)) as caught:
        kernel_registry.add("debian:4.2")
    if isinstance(caught.value, FetchFailed) and "is expired" in caught.value.message:
        pytest.skip(f"the mirror is behind: {caught.value.message}")
    assert "5.10, 6.1, 6.12" in caught.value.advice


def test_the_host_kernel_is_added_or_its_absence_explained(empty_cache: Path) -> None:
    release = platform.release()
    script = "from ktrial.kernels import kernel_registry; print(kernel_registry.add('host').release)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    if Path(f"/boot/vmlinuz-{release}").exists():
        assert done.stdout.strip() == release
    else:
        assert f"KernelError: The running kernel {release} has no image on this machine" in done.stderr


def test_a_system_whose_lists_were_never_fetched_has_its_archives_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "apt.conf").write_text(f'Dir::State::lists "{tmp_path}/lists";')
    monkeypatch.setenv("APT_CONFIG", str(tmp_path / "apt.conf"))
    outputs = [
        subprocess.run(["apt-get", "indextargets", *more], capture_output=True, text=True, check=True).stdout
        for more in ([], ["--no-release-info"])
    ]
    assert outputs[0] == "", "nothing was fetched into the empty directory"
    assert debian_archives("debian:6.1", configured_sources("\n".join(outputs)))


@pytest.fixture
def archive() -> Archive:
    """The system's own main archive, cut down to one small suite."""
    targets = subprocess.run(["apt-get", "indextargets"], capture_output=True, text=True, check=True).stdout
    archives = debian_archives("debian:6.1", configured_sources(targets))
    return Archive(archives[0].uri, ("trixie-backports",), archives[0].options)


def test_lists_without_a_valid_signature_are_refused(tmp_path: Path, archive: Archive) -> None:
    keyring = tmp_path / "empty.gpg"
    keyring.write_bytes(b"")
    other = Archive(archive.uri, archive.suites, (("Signed-By", str(keyring)),))
    apt = PrivateApt(tmp_path / "apt", "Debian", "amd64", r"linux-image-\d\S*-amd64")
    with pytest.raises(FetchFailed, match=r"NO_PUBKEY|not signed|verif"):
        apt.packages((other,), "debian:6.1", silent)


@pytest.mark.parametrize("kind", ["plain", "mirror list"])
def test_packages_come_from_plain_archives_and_from_mirror_lists(
    tmp_path: Path, archive: Archive, kind: str
) -> None:
    """Debian's cloud images name their archive by `mirror+file:`, a file that holds the address."""
    (tmp_path / "mirrors.list").write_text(f"{archive.uri}\n")
    uri = archive.uri if kind == "plain" else f"mirror+file:{tmp_path}/mirrors.list"
    apt = PrivateApt(tmp_path / "apt", "Debian", "amd64", r"linux-base-\d\S*-amd64")
    packages = apt.packages((Archive(uri, archive.suites, archive.options),), "debian:6.1", silent)
    smallest = min(packages, key=lambda package: package.size)
    into = tmp_path / "debs"
    into.mkdir()
    (file,) = apt.download([smallest], into, "debian:6.1", silent)
    assert file.stat().st_size == smallest.size
    assert hashlib.sha256(file.read_bytes()).hexdigest() == smallest.sha256


def test_a_package_that_is_not_what_the_list_promises_is_refused(tmp_path: Path, archive: Archive) -> None:
    apt = PrivateApt(tmp_path / "apt", "Debian", "amd64", r"linux-base-\d\S*-amd64")
    packages = apt.packages((archive,), "debian:6.1", silent)
    other = replace(min(packages, key=lambda package: package.size), sha256="0" * 64)
    (tmp_path / "debs").mkdir()
    with pytest.raises(FetchFailed, match="Hash Sum mismatch"):
        apt.download([other], tmp_path / "debs", "debian:6.1", silent)


def test_a_suite_that_is_not_there_is_skipped(tmp_path: Path, archive: Archive) -> None:
    more = Archive(archive.uri, ("no-such-suite", *archive.suites), archive.options)
    apt = PrivateApt(tmp_path / "apt", "Debian", "amd64", r"linux-image-\d\S*-amd64")
    assert {one.suite for one in apt.packages((more,), "debian:6.1", silent)} == set(archive.suites)
    assert apt.problems() == []


@pytest.mark.nightly
def test_an_archive_that_cannot_be_reached_is_told_with_apts_own_words(
    tmp_path: Path, archive: Archive
) -> None:
    # The port discard is closed on every machine that has not opened it for a purpose.
    nowhere = Archive("http://127.0.0.1:9/debian/", archive.suites, archive.options)
    apt = PrivateApt(tmp_path / "apt", "Debian", "amd64", r"linux-image-\d\S*-amd64")
    with pytest.raises(FetchFailed, match=r"could not be fetched from Debian: .*(connect|refused|Failed)"):
        apt.packages((nowhere,), "debian:6.1", silent)


@pytest.mark.parametrize(
    ("dates", "said"),
    [
        ("Date: Mon, 06 Jan 2020 10:00:00 UTC\nValid-Until: Mon, 13 Jan 2020 10:00:00 UTC\n", "is expired"),
        ("Date: Fri, 06 Jan 2090 10:00:00 UTC\n", "is not valid yet"),
    ],
)
def test_lists_of_another_time_let_the_user_look_at_the_clock(tmp_path: Path, dates: str, said: str) -> None:
    suite = tmp_path / "mirror" / "dists" / "bookworm"
    suite.mkdir(parents=True)
    packages = suite / "main" / "binary-amd64" / "Packages"
    packages.parent.mkdir(parents=True)
    packages.touch()
    hashed = f"SHA256:\n {hashlib.sha256(b'').hexdigest()} 0 main/binary-amd64/Packages\n"
    about = "Suite: bookworm\nCodename: bookworm\nComponents: main\nArchitectures: amd64\n"
    (suite / "Release").write_text(about + dates + hashed)
    # Not signed, as what counts here comes after that; the system's apt may be told to mind no dates.
    options = {"Trusted": "yes", "Check-Valid-Until": "yes", "Check-Date": "yes"}
    stale = Archive(f"file:{tmp_path}/mirror", ("bookworm",), tuple(options.items()))
    apt = PrivateApt(tmp_path / "apt", "Debian", "amd64", r"linux-image-\d\S*-amd64")
    with pytest.raises(FetchFailed, match=said) as caught:
        apt.packages((stale,), "debian:6.1", silent)
    assert "this machine's clock says 20" in caught.value.advice
