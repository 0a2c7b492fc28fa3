"""What a failed build wants: told from what old sources print with new compilers, and what is missing."""

from pathlib import Path

import pytest
from tests.support.fake_builds import a_buildable_source

from ktrial.kernels.build.builds import build
from ktrial.kernels.build.make import (
    advice_on,
    compiler_of,
    cut_short,
    missing_tool,
    older_compiler,
    paths_in_source,
    wanted_tool,
)
from ktrial.kernels.build.requests import requested
from ktrial.kernels.errors import BuildFailed, BuildToolsMissing, CompilerUnsuitable

C23 = """\
  CC      arch/x86/realmode/rm/wakemain.o
./include/linux/stddef.h:11:9: error: cannot use keyword ‘false’ as enumeration constant
   11 |         false   = 0,
      |         ^~~~~
./include/linux/types.h:35:33: error: ‘bool’ cannot be defined via ‘typedef’
make[1]: *** [arch/x86/realmode/rm/wakemain.o] Error 1
"""
"""Linux 6.6.87 with gcc 15."""
SUBCMD = """\
In file included from help.c:12:
In function ‘xrealloc’,
    inlined from ‘add_cmdname’ at help.c:24:2:
subcmd-util.h:56:23: error: pointer may be used after ‘realloc’ [-Werror=use-after-free]
   56 |                 ret = realloc(ptr, size);
      |                       ^~~~~~~~~~~~~~~~~~
cc1: all warnings being treated as errors
make[4]: *** [/src/linux-5.13/tools/build/Makefile.build:97: tools/objtool/help.o] Error 1
make[3]: *** [Makefile:59: tools/objtool/libsubcmd-in.o] Error 2
"""
"""Linux 5.13 and 5.10.5 with gcc 12."""
OWN = """\
kernel/fork.c:10:5: error: unused variable ‘x’ [-Werror=unused-variable]
cc1: all warnings being treated as errors
make[2]: *** [scripts/Makefile.build:250: kernel/fork.o] Error 1
"""


@pytest.mark.parametrize(
    ("output", "expected", "advice"),
    [
        (C23, "a gcc before 15", "--make CC=gcc-14 --make HOSTCC=gcc-14"),
        (SUBCMD, "this one warns of use-after-free", "--make HOSTCC=gcc-11"),
        ("FAILED: load BTF from vmlinux: Unknown error -22\n", "another pahole", "--option DEBUG_INFO_BTF=n"),
        (
            "BTF: .tmp_vmlinux.btf: pahole version v1.12 is too old, need at least v1.13\n",
            "another pahole",
            "",
        ),
        (
            "BTF: .tmp_vmlinux.btf: pahole (pahole) is not available\n",
            "pahole, for",
            "--no-install-recommends dwarves",
        ),
        ("arch/x86/Makefile:9: *** Compiler is too old.  Stop.\n", "a newer compiler", "CC=gcc-14"),
        ("gcc: error: unrecognized command-line option ‘-mfoo’\n", "which knows -mfoo", ""),
        ("*** Linker is too old.\n", "newer binutils", "LLVM=1"),
    ],
)
def test_known_failures_of_compilers_and_sources_say_what_is_wanted(
    output: str, expected: str, advice: str
) -> None:
    tool = wanted_tool(output)
    assert tool is not None
    assert expected in tool[0]
    assert advice in tool[1]


@pytest.mark.parametrize(
    "output",
    [
        "gcc: fatal error: Killed signal terminated program cc1\ncompilation terminated.\n"
        "make[2]: *** [scripts/Makefile.build:250: kernel/fork.o] Error 1\n",
        "gcc: internal compiler error: Killed (program cc1)\n",
        "clang: error: unable to execute command: Killed\n",
        "collect2: fatal error: ld terminated with signal 9 [Killed]\n",
        "cc1: out of memory allocating 65536 bytes after a total of 1916928 bytes\n",
        "ld: final link failed: memory exhausted\n",
        "make[1]: *** [scripts/Makefile.vmlinux:34: vmlinux] Error 137\n",
        "make: *** [Makefile:2: all] Terminated\n",
    ],
)
def test_a_compiler_that_was_killed_or_had_no_memory_says_nothing_about_the_source(output: str) -> None:
    assert cut_short(output)
    assert not cut_short(OWN)


@pytest.mark.parametrize("output", [OWN, "a.c:1:2: error: oh\n", ""])
def test_an_error_of_the_source_s_own_is_no_matter_of_the_compiler(output: str) -> None:
    assert wanted_tool(output) is None
    assert missing_tool(output) is None


@pytest.mark.parametrize(
    ("output", "tool", "package"),
    [
        ("/bin/sh: 1: bc: not found\nmake[1]: *** [include/generated/timeconst.h] Error 127\n", "bc", "bc"),
        ("/bin/sh: line 1: bison: command not found\n", "bison", "bison"),
        ("make[2]: flex: No such file or directory\n", "flex", "flex"),
        ("  EXTRACT_CERTS\nsh: openssl: not found\n", "openssl", "openssl"),
        ("sh: 1: pahole: not found\n", "pahole", "dwarves"),
        ("scripts/extract-cert.c:21:10: fatal error: openssl/bio.h: No such file or directory\n",
         "openssl/bio.h", "libssl-dev"),
        ("elf.h:10:10: fatal error: gelf.h: No such file or directory\n", "gelf.h", "libelf-dev"),
        ("sh: depmod: not found\n", "depmod", "kmod"),
    ],
)  # fmt: skip
def test_what_is_not_installed_is_named_with_its_package(output: str, tool: str, package: str) -> None:
    assert missing_tool(output) == (tool, package)


@pytest.mark.parametrize(
    "output", ["a.c:1:1: fatal error: mine.h: No such file or directory\n", "x: not found\n"]
)
def test_what_no_package_has_is_not_named(output: str) -> None:
    assert missing_tool(output) is None


@pytest.mark.parametrize(
    ("compiler", "version", "message"),
    [
        ("gcc (Debian 12.2.0-14) 12.2.0, GNU ld 2.40", "5.10.237", "gcc 12 came out after Linux 5.10"),
        ("gcc (Debian 12.2.0-14) 12.2.0, GNU ld 2.40", "5.15.1", "--make CC=gcc-11 --make HOSTCC=gcc-11"),
        ("gcc (Debian 12.2.0-14) 12.2.0, GNU ld 2.40", "6.1.192", ""),
        ("gcc (GCC) 15.1.1, GNU ld 2.44", "6.12.3", "--make CC=gcc-14"),
        ("gcc (GCC) 15.1.1, GNU ld 2.44", "6.15.0", ""),
        ("gcc (GCC) 16.0.0, GNU ld 2.44", "7.3.0", "--make CC=gcc-15"),
        ("Debian clang version 14.0.6, LLD 14", "5.10.1", ""),
        ("cc, ld", "5.10.1", ""),
        ("gcc 12.2.0, ld", "5.4.1", "--make CC=gcc-10"),
    ],
)
def test_a_compiler_that_is_younger_than_the_source_is_told(
    compiler: str, version: str, message: str
) -> None:
    older = older_compiler(compiler, version)
    assert message in older
    assert bool(older) == bool(message)


@pytest.mark.parametrize(
    ("printed", "error", "message"),
    [
        (C23, CompilerUnsuitable, "needs a gcc before 15"),
        ("sh: 1: bc: not found\n", BuildToolsMissing, "needs bc, not installed here"),
        (OWN, BuildFailed, "error: unused variable"),
    ],
)
def test_a_failed_build_ends_with_the_error_that_fits(
    printed: str, error: type[Exception], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KTRIAL_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("ktrial.kernels.build.builds.check_tools", lambda *_, **__: None)
    monkeypatch.setattr("ktrial.kernels.build.builds.check_tools_of", lambda *_, **__: None)
    source = a_buildable_source(tmp_path / "linux")
    (source / "printed").write_text(printed)
    makefile = source / "Makefile"
    makefile.write_text(
        makefile.read_text().replace("\t@if grep -q STOP", "\t@cat printed; false\n\t@if grep -q STOP")
    )
    with pytest.raises(error, match=message) as caught:
        build(requested(str(source), directory=Path("/")))
    if error is BuildFailed:
        younger = older_compiler(compiler_of({}).shown, "6.1.0")
        assert younger in getattr(caught.value, "advice", "")


@pytest.mark.parametrize(
    ("problem", "message"),
    [
        ("kernel/sched/muqss.c:9:10: fatal error: MuQSS.h: No such file or directory", "neither the source"),
        ("make[2]: *** No rule to make target 'kernel/bfs.o', needed by 'kernel/built-in.a'.  Stop.", ""),
        ("kernel/fork.c:1:2: error: array subscript 0 is outside of array bounds", "gcc 12 came out after"),
    ],
)
def test_no_other_compiler_is_advised_where_a_file_is_missing(problem: str, message: str) -> None:
    advice = advice_on(problem, "gcc (Debian 12.2.0-14) 12.2.0, GNU ld 2.40", "5.10.237")
    assert advice.startswith(message)
    assert bool(advice) == bool(message)


def test_paths_in_messages_lead_to_the_source_s_files(tmp_path: Path) -> None:
    source = a_buildable_source(tmp_path / "linux")
    (source / "drivers/dc").mkdir(parents=True)
    (source / "drivers/dc/dc.h").touch()
    (source / "kernel/dc.h").touch()
    output = (
        "In file included from ../drivers/gpu/../dc/dc.h:3,\n"
        "../kernel/fork.c:4:10: fatal error: ../kernel/dc.h: No such file or directory\n"
        "make[1]: *** [../Makefile:9: kernel/fork.o] Error 1\n"
        "../nowhere/x.c:1: error: generated\n"
    )
    message = (
        output.replace("from ../drivers", "from drivers")
        .replace("\n../kernel", "\nkernel")
        .replace("[../Make", "[Make")
    )
    (source / "drivers/gpu").mkdir()
    assert paths_in_source(output, source, source / "build") == message
    assert paths_in_source(output, source, tmp_path / "build") == output
    complete = f"{source}/kernel/fork.c:4: error: a ../b\n"
    assert paths_in_source(complete, source, tmp_path / "build") == "kernel/fork.c:4: error: a ../b\n"
