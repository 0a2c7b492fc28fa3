"""quilt's series files, as Debian writes them; `-pN`, comments, and lines that lead elsewhere."""

from pathlib import Path

import pytest

from ktrial.kernels.build.patches import text_of
from ktrial.kernels.errors import BadPatch, KernelUsageError
from ktrial.kernels.patch_series import series_in_quilt
from ktrial.model.kernel import PatchSeries

DIFF = "--- {old}\n+++ {new}\n@@ -1 +1 @@\n-int a;\n+long a;\n"


def diff(level: int) -> str:
    start = "".join(f"dir{number}/" for number in range(level))
    return DIFF.format(old=f"{start}mm/a.c", new=f"{start}mm/a.c")


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KTRIAL_CACHE", str(tmp_path / "cache"))


def read(place: Path, series: str, **files: str) -> PatchSeries:
    for name, text in {"series": series, **files}.items():
        path = place / "q" / name.replace("__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return series_in_quilt(place / "q", "debian:linux-source-6.1")


def test_comments_empty_lines_and_disabled_patches_are_no_patches(tmp_path: Path) -> None:
    text = "# Debian's\n\nbugfix/one.patch\n  # features/two.patch\n#three.patch\nfour.patch -p1 # later\n"
    files = {
        name: f"Subject: [PATCH 3/9] mm:\n one\n\n{diff(1)}" for name in ("bugfix__one.patch", "four.patch")
    }
    series = read(tmp_path, text, **files, **{"three.patch": diff(1)})
    assert [patch.name for patch in series.patches] == ["bugfix/one.patch", "four.patch"]
    assert [patch.subject for patch in series.patches] == ["mm: one", "mm: one"]
    assert series.notes == ("1 of the patches beside it are commented out in series",)


@pytest.mark.parametrize("level", [0, 2, 3])
def test_paths_begin_with_as_many_directories_as_the_line_says(level: int, tmp_path: Path) -> None:
    (patch,) = read(tmp_path, f"one.patch -p{level}\n", **{"one.patch": diff(level)}).patches
    assert patch.paths == ("mm/a.c",)
    assert patch.patch
    assert "--- a/mm/a.c\n+++ b/mm/a.c\n@@ -1 +1 @@\n" in text_of(patch.patch)


def test_a_patch_without_a_header_is_called_by_its_file(tmp_path: Path) -> None:
    (patch,) = read(tmp_path, "one.patch\n", **{"one.patch": diff(1)}).patches
    assert patch.subject == "one.patch"


@pytest.mark.parametrize("place", ["patches", "debian/patches"])
def test_the_series_of_a_tree_below_is_found(place: str, tmp_path: Path) -> None:
    where = f"{place.replace('/', '__')}__"
    read(
        tmp_path,
        "one.patch\n",
        **{f"{where}series": "two.patch\n", f"{where}two.patch": diff(1), "one.patch": diff(1)},
    )
    (tmp_path / "q" / "series").unlink()
    (patch,) = series_in_quilt(tmp_path / "q", "x").patches
    assert patch.name == "two.patch"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("# nothing\n", "names no patch"),
        ("one.patch\none.patch\n", "line 2: one.patch is there twice"),
        ("one.patch -R\n", "line 1: '-R' is not a supported option"),
        ("../one.patch\n", "line 1: ../one.patch lies outside"),
        ("/etc/passwd\n", "line 1: /etc/passwd lies outside"),
        ("\n\nnone.patch\n", "line 3: none.patch: No such file"),
    ],
)
def test_a_line_that_cannot_be_followed_is_refused_by_its_number(
    text: str, message: str, tmp_path: Path
) -> None:
    with pytest.raises(KernelUsageError, match=message) as refused:
        read(tmp_path, text, **{"one.patch": diff(1)})
    assert refused.value.advice


def test_a_directory_without_a_series_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(KernelUsageError, match="no patches/series"):
        series_in_quilt(tmp_path, "x")
    with pytest.raises(KernelUsageError, match="there is no such directory"):
        series_in_quilt(tmp_path / "nowhere", "x")


def test_a_damaged_patch_names_its_file(tmp_path: Path) -> None:
    with pytest.raises(
        BadPatch, match=r"one\.patch cannot be used: hunk 1 of a/mm/a\.c|one\.patch cannot be used"
    ):
        read(tmp_path, "one.patch\n", **{"one.patch": diff(1).replace("-int", "int")})


def test_the_copy_that_a_plain_diff_was_made_against_is_no_second_file(tmp_path: Path) -> None:
    """As Andrew Morton's -mm patches were written: `--- a/mm/slab.c~count`."""
    (tmp_path / "series").write_text("count.patch\n")
    diff = "--- a/mm/slab.c~count\n+++ a/mm/slab.c\n@@ -1 +1 @@\n-int a;\n+long a;\n"
    (tmp_path / "count.patch").write_text(diff)
    (patch,) = series_in_quilt(tmp_path, "debian:linux-source-6.1").patches
    assert patch.paths == ("mm/slab.c",)
