"""What a killed build leaves: `.cmd` files that were cut off anywhere, and products newer than theirs."""

import os
from pathlib import Path

import pytest

from ktrial.kernels.build.build_trees import is_cut_off, mend

COMPILED = b"""\
cmd_fs/open.o := gcc -Wp,-MMD,fs/.open.o.d -c -o fs/open.o ../fs/open.c  ; ./tools/objtool/objtool fs/open.o

source_fs/open.o := ../fs/open.c

deps_fs/open.o := \\
    $(wildcard include/config/CC_VERSION_TEXT) \\
  ../include/linux/kconfig.h \\

fs/open.o: $(deps_fs/open.o)

$(deps_fs/open.o):
"""
"""As fixdep writes it."""
LINKED = b"cmd_fs/built-in.a := rm -f fs/built-in.a;  printf '%s ' open.o | xargs ar cDPrST fs/built-in.a\n"


@pytest.mark.parametrize("content", [COMPILED, LINKED])
def test_a_note_that_was_cut_off_anywhere_is_told(content: bytes) -> None:
    assert not is_cut_off(content)
    assert all(is_cut_off(content[:length]) for length in range(len(content)))


def test_what_objtool_adds_behind_it_is_no_damage() -> None:
    assert not is_cut_off(COMPILED + b"\nfs/open.o: $(wildcard ./tools/objtool/objtool)\n")


def product(build: Path, name: str, noted: bytes, *, seconds: int = 1) -> Path:
    """A product, and its note, written so many seconds later."""
    path = build / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("code")
    note = path.with_name(f".{path.name}.cmd")
    note.write_bytes(noted)
    os.utime(path, (1000, 1000))
    os.utime(note, (1000 + seconds, 1000 + seconds))
    return path


def test_what_may_be_half_written_is_made_anew_and_nothing_else(tmp_path: Path) -> None:
    complete = product(tmp_path, "fs/open.o", COMPILED)
    at_once = product(tmp_path, "fs/built-in.a", LINKED, seconds=0)
    cut = product(tmp_path, "fs/read.o", COMPILED[:200])
    newer = product(tmp_path, "fs/write.o", COMPILED, seconds=-1)
    (tmp_path / "fs/.gone.o.cmd").write_bytes(COMPILED[:100])
    assert mend(tmp_path) == (tmp_path / "fs/gone.o", cut, newer)
    left = sorted(path.name for path in (tmp_path / "fs").iterdir())
    assert left == [".built-in.a.cmd", ".open.o.cmd", "built-in.a", "open.o"]
    assert complete.exists()
    assert at_once.exists()
    assert mend(tmp_path) == ()
