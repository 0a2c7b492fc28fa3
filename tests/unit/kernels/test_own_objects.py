"""What a patch breaks is told before all that includes its header is compiled: a tiny source, a real gcc.

A build of it takes 0.2 s of CPU.
"""

import difflib
from pathlib import Path

import pytest
from tests.support.fake_builds import a_source_tree, compiled

from ktrial.kernels.build.builds import FEW_FILES, OwnObjects, build, functions
from ktrial.kernels.build.requests import requested
from ktrial.kernels.errors import BuildFailed
from ktrial.model.kernel import Kernel

CALLERS = FEW_FILES + 3
HEADER = "int enqueue(int);\nint dequeue(int);\n"
QUEUE = (
    '#include "queue.h"\nint length;\nint enqueue(int x) { return x; }\nint dequeue(int x) { return -x; }\n'
)
RULES = """\
OBJECTS = $(patsubst %.c,%.o,$(sort $(wildcard kernel/*.c)))
.PHONY: $(OBJECTS)
# As kbuild: what made an object, and what that has read, is noted beside it; nothing old is compiled again.
$(OBJECTS): kernel/%.o: kernel/%.c
\t@mkdir -p $(O)/kernel; cd $(O)/kernel; echo "  CC      $@"; \\
\tif [ $*.o -nt ../../kernel/$*.c ] && [ $*.o -nt ../../include/queue.h ]; then exit 0; fi; \\
\techo $* $$(date +%s.%N) >> $(O)/compiled; rm -f $*.o; \\
\tif grep -q queue.h ../../kernel/$*.c; then header="../include/queue.h"; fi; \\
\tgcc -Werror -Wall -I../../include -c ../../kernel/$*.c -o $*.o && \\
\tprintf 'cmd_$@ := gcc -Wp,-MMD,x\\n\\ndeps_$@ := ../kernel/%s.c %s\\n\\n$$(deps_$@):\\n' \\
\t  $* "$$header" > .$*.o.cmd
vmlinux: $(OBJECTS)
\t@cd $(O) && ld -r -o all.o $(OBJECTS) && ld --entry=0 -o linked all.o
"""


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("KTRIAL_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("ktrial.kernels.build.builds.check_tools", lambda *_, **__: None)
    monkeypatch.setattr("ktrial.kernels.build.builds.check_tools_of", lambda *_, **__: None)
    return tmp_path / "cache"


@pytest.fixture
def source(tmp_path: Path, cache: Path) -> Path:
    """Many that call `enqueue` by the header, `aside` that declares it itself; built once."""
    place = a_source_tree(tmp_path / "linux")
    makefile = place / "Makefile"
    makefile.write_text(makefile.read_text().replace("vmlinux:\n", RULES, 1))
    (place / "kernel").mkdir()
    (place / "include").mkdir()
    (place / "include/queue.h").write_text(HEADER)
    (place / "kernel/queue.c").write_text(QUEUE)
    (place / "kernel/aside.c").write_text("int dequeue(int);\nint aside(void) { return dequeue(2); }\n")
    for entry in range(CALLERS):
        call = f"int call{entry}(void) {{ return enqueue({entry}); }}\n"
        (place / f"kernel/call{entry}.c").write_text(f'#include "queue.h"\n{call}')
    build(requested(str(place), directory=Path("/")))
    assert len(compiled(cache)) == CALLERS + 2
    return place


def with_patch(source: Path, **texts: str) -> Kernel:
    """Build it with these contents of kernel/NAME.c, of include/queue.h for `header`, as a patch."""
    message = ""
    for name, text in texts.items():
        path = "include/queue.h" if name == "header" else f"kernel/{name}.c"
        before = (source / path).read_text().splitlines(keepends=True)
        message += "".join(
            difflib.unified_diff(before, text.splitlines(keepends=True), f"a/{path}", f"b/{path}")
        )
    patch = source.with_name("p.patch")
    patch.write_text(message)
    return build(requested(str(source), patches=(str(patch),), directory=Path("/")))


def problem_of(source: Path, **texts: str) -> str:
    """Why it does not build so."""
    with pytest.raises(BuildFailed) as caught:
        with_patch(source, **texts)
    return caught.value.problem


def test_its_own_files_are_compiled_before_those_that_include_its_header(source: Path, cache: Path) -> None:
    problem = problem_of(source, header=f"{HEADER}int more;\n", queue=QUEUE.replace("return x", "return y"))
    assert "kernel/queue.c:3:" in problem
    assert "'y' undeclared" in problem.replace("‘", "'").replace("’", "'")
    assert compiled(cache).count("queue") == 2
    assert len(compiled(cache)) == CALLERS + 3


def test_a_function_that_is_gone_and_that_nothing_compiles_anew_is_told_at_once(
    source: Path, cache: Path
) -> None:
    without = QUEUE.replace("dequeue(", "take(")
    problem = problem_of(source, header=HEADER.replace("dequeue", "take"), queue=without)
    assert problem == "kernel/queue.c no longer has dequeue, which kernel/aside.c still calls"
    assert len(compiled(cache)) == CALLERS + 3


def test_a_function_that_is_gone_from_its_header_too_is_named_with_who_calls_it(source: Path) -> None:
    without = QUEUE.replace("enqueue(", "put(")
    problem = problem_of(source, header=HEADER.replace("enqueue", "put"), queue=without)
    assert "implicit declaration of function" in problem
    assert "kernel/queue.c no longer has enqueue, which " in problem
    assert "files still call: kernel/call" in problem


def test_a_small_patch_that_takes_a_function_away_is_told_who_calls_it(source: Path) -> None:
    problem = problem_of(
        source, queue=QUEUE.replace("int dequeue(int x)", "static int __attribute__((unused)) dequ(int x)")
    )
    assert "undefined reference" in problem
    assert "kernel/queue.c no longer has dequeue, which kernel/aside.c still calls" in problem


def test_what_moves_to_another_file_is_not_missed(source: Path, cache: Path) -> None:
    moved = (source / "kernel/aside.c").read_text() + "int dequeue(int x) { return -x; }\n"
    without = QUEUE.replace("int dequeue(int x) { return -x; }\n", "")
    assert with_patch(source, header=f"{HEADER}extern int length;\n", queue=without, aside=moved).digest
    assert len(compiled(cache)) == 2 * (CALLERS + 2)


def test_a_new_tree_learns_from_others_what_is_compiled_and_what_calls_what(
    source: Path, cache: Path, tmp_path: Path
) -> None:
    (differing,) = (cache / "trees").glob("*/source/build")
    path = differing / "kernel/aside.o"
    assert functions(path) == ({"aside"}, {"dequeue"})
    assert functions(path.with_name("none.o")) == (set(), set())
    objects = OwnObjects.of(
        tmp_path, (), ("kernel/aside.c", "kernel/none.c", "include/queue.h"), (differing,)
    )
    assert (objects.paths, objects.functions_before, objects.in_order) == (("kernel/aside.o",), {}, True)
    assert not OwnObjects.of(tmp_path, ("kernel/Makefile",), (), (differing,)).in_order
