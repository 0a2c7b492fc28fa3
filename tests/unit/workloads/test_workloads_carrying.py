"""What a host program brings into the guest."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from ktrial.model.machine import CarriedFile
from ktrial.workloads.errors import WorkloadError
from ktrial.workloads.host_files import program_path, with_all_they_need


def carried(*files: str | Path) -> dict[str, CarriedFile]:
    return {each.guest: each for each in with_all_they_need("mine", tuple(str(file) for file in files))}


def by_ldd(program: str) -> set[str]:
    """The libraries that the loader itself finds, by their real names: /lib is a link."""
    told = subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout
    return {os.path.realpath(path) for path in re.findall(r"(/\S+) \(0x", told)}


@pytest.mark.parametrize("program", ["/bin/true", "/usr/bin/env", "/bin/bash", "/usr/bin/python3"])
def test_a_program_brings_the_libraries_that_the_loader_finds(program: str) -> None:
    files = carried(program)
    assert program in files
    assert by_ldd(program) <= set(map(os.path.realpath, files))
    assert by_ldd(program)


def test_everything_that_is_carried_is_a_real_file_and_programs_stay_executable() -> None:
    files = carried("/bin/bash")
    assert all(each.host.is_file() and not each.host.is_symlink() for each in files.values())
    assert files["/bin/bash"].mode & 0o111


def test_a_script_brings_its_interpreter_and_what_that_needs(tmp_path: Path) -> None:
    script = tmp_path / "run"
    script.write_text("#!/bin/sh -e\necho\n")
    files = carried(script)
    assert {str(script), "/bin/sh"} <= set(files)
    assert by_ldd("/bin/sh") <= set(map(os.path.realpath, files))


def test_env_in_the_first_line_brings_the_program_it_finds(tmp_path: Path) -> None:
    script = tmp_path / "run"
    script.write_text("#!/usr/bin/env -S LANG=C bash -e\n")
    assert {"/usr/bin/env", program_path("mine", "bash")} <= set(carried(script))


def test_a_data_file_brings_nothing(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.write_bytes(b"\x00\x01")
    assert list(carried(data)) == [str(data)]


def test_a_file_named_twice_is_carried_once(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.write_text("x")
    assert len(with_all_they_need("mine", (str(data), str(data)))) == 1


def compile_c(source: str, output: Path, *flags: str) -> None:
    compiler = shutil.which("cc")
    assert compiler, "the Rust tool chain needs a C compiler to link with, so that there is one"
    subprocess.run([compiler, "-x", "c", "-", "-o", output, *flags], input=source, text=True, check=True)


def test_a_library_beside_the_program_is_found_by_its_runpath(tmp_path: Path) -> None:
    library, program = tmp_path / "lib" / "libown.so", tmp_path / "program"
    library.parent.mkdir()
    compile_c("int own(void) { return 0; }", library, "-shared", "-fPIC")
    flags = (f"-L{library.parent}", "-lown", "-Wl,-rpath,$ORIGIN/lib")
    compile_c("int own(void); int main(void) { return own(); }", program, *flags)
    assert str(library) in carried(program)


@pytest.mark.parametrize("linked", [False, True])
def test_a_library_above_the_programs_directory_is_found_by_its_runpath(tmp_path: Path, linked: bool) -> None:
    """Every OpenJDK has `$ORIGIN/../lib`; ld.so follows links before it goes up."""
    home = tmp_path / "jdk"
    library, program = home / "lib" / "libown.so", home / "bin" / "java"
    library.parent.mkdir(parents=True)
    program.parent.mkdir()
    compile_c("int own(void) { return 0; }", library, "-shared", "-fPIC")
    flags = (f"-L{library.parent}", "-lown", "-Wl,-rpath,$ORIGIN/../lib")
    compile_c("int own(void); int main(void) { return own(); }", program, *flags)
    named = program
    if linked:
        named = tmp_path / "java"
        named.symlink_to(program)
    assert str(library) in carried(named)


def test_a_file_that_a_guest_cannot_have_is_refused_before_anything_is_booted() -> None:
    with pytest.raises(
        WorkloadError, match=r"cannot carry /proc/version .*: what is below /proc is the guest"
    ):
        with_all_they_need("mine", ("/proc/version",))


def test_a_static_program_brings_itself_only(tmp_path: Path) -> None:
    program = tmp_path / "program"
    compile_c("int main(void) { return 0; }", program, "-static")
    assert list(carried(program)) == [str(program)]


def test_a_library_that_is_nowhere_is_named(tmp_path: Path) -> None:
    library, program = tmp_path / "libgone.so", tmp_path / "program"
    compile_c("int own(void) { return 0; }", library, "-shared", "-fPIC")
    compile_c("int own(void); int main(void) { return own(); }", program, f"-L{tmp_path}", "-lgone")
    library.unlink()
    with pytest.raises(WorkloadError, match=r"program needs the shared library libgone\.so"):
        carried(program)


def test_a_damaged_program_is_an_error(tmp_path: Path) -> None:
    program = tmp_path / "program"
    program.write_bytes(Path("/bin/true").read_bytes()[:100])
    with pytest.raises(WorkloadError, match="it is a damaged program"):
        carried(program)


def test_a_program_for_another_machine_is_an_error(tmp_path: Path) -> None:
    whole = bytearray(Path("/bin/true").read_bytes())
    whole[18:20] = (183).to_bytes(2, "little")  # e_machine: EM_AARCH64
    program = tmp_path / "program"
    program.write_bytes(whole)
    with pytest.raises(WorkloadError, match="it is a program for AArch64, 64 bits, not for x86-64"):
        carried(program)


@pytest.mark.parametrize("missing", ["/no/such/file", "no-such-file"])
def test_a_missing_file_is_an_error(missing: str) -> None:
    with pytest.raises(WorkloadError, match=r"cannot carry \S+such\Sfile into the guest: No such file"):
        carried(missing)


@pytest.mark.parametrize("program", ["no-such-program", "/no/such/program", "/tmp"])
def test_a_missing_program_is_an_error(program: str) -> None:
    with pytest.raises(WorkloadError, match=f"no program {program} on this host"):
        program_path("mine", program)
