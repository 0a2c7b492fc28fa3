"""A source tree whose make compiles an object for each kernel/*.c by its own rules, and notes which."""

import subprocess
from pathlib import Path

from tests.support.source_trees import a_source_tree

_RULES = """\
OBJECTS = $(patsubst kernel/%.c,$(O)/kernel/%.o,$(wildcard kernel/*.c))
$(O)/kernel/%.o: kernel/%.c
\t@mkdir -p $(O)/kernel
\t@if grep -q STOP $< || [ "$$LC_STOP_AT" = $* ]; then exec sleep 60; fi
\t@if grep -q ERROR $<; then cat $< >&2; exit 1; fi
\t@cp $< $@
\t@echo "  CC      $<"
\t@echo $* >> $(O)/compiled
vmlinux: $(OBJECTS)
"""
# `STOP` in a file, or its name in the environment's LC_STOP_AT: its compilation takes a minute.
# `ERROR` in it: that is what the compiler says.
FILES = {"fork": "int fork;\n", "sched": "int sched;\nint slice = 3;\nint end;\n"}


def a_buildable_source(directory: Path, files: dict[str, str] | None = None) -> Path:
    """Write it to a new directory."""
    a_source_tree(directory)
    makefile = directory / "Makefile"
    text = makefile.read_text().replace("vmlinux:\n", _RULES, 1)
    text = text.replace("cp image $(O)/vmlinux", "cat image $(OBJECTS) > $(O)/vmlinux")
    makefile.write_text(text)
    (directory / "kernel").mkdir()
    for name, content in (files or FILES).items():
        (directory / f"kernel/{name}.c").write_text(content)
    return directory


def compiled(cache: Path) -> list[str]:
    """Every object that was compiled in any tree, each as often as it was."""
    logs = (cache / "trees").glob("*/source/build/compiled")
    return sorted(line for log in logs for line in log.read_text().splitlines())


def git(directory: Path, *arguments: str) -> str:
    """Run git in a directory, as somebody."""
    who = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false"]
    done = subprocess.run(
        ["git", *who, "-C", directory, *arguments], check=True, capture_output=True, text=True
    )
    return done.stdout.strip()


def a_patch(source: Path, name: str, old: str, new: str) -> str:
    """A patch that changes one file of kernel/, as diff -u writes it."""
    path = source / f"kernel/{name}.c"
    changed = path.with_suffix(".new")
    changed.write_text(path.read_text().replace(old, new))
    done = subprocess.run(
        ["diff", "-u", "--label", f"a/kernel/{name}.c", "--label", f"b/kernel/{name}.c", path, changed],
        capture_output=True,
        text=True,
        check=False,
    )
    changed.unlink()
    assert done.stdout
    return done.stdout
