"""Manifests of sources: what is worked out from few changes is what all files together give."""

import re
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from ktrial.kernels.build.recipes import Manifest, keep_manifest, kept_manifest

PATHS = ("Kconfig", "Makefile", "fs/Makefile", "fs/open.c", "fs/pipe.c", "mm/mmap.c")
FILES = st.dictionaries(st.sampled_from(PATHS), st.sampled_from(("100644 a", "100644 b", "100755 a")))
CHANGES = st.dictionaries(st.sampled_from(PATHS), st.sampled_from(("100644 a", "100644 c", None)))
READ = re.compile(r"(?:.*/)?(?:Kconfig|Makefile)")


@given(files=FILES, first=CHANGES, second=CHANGES)
def test_a_changed_manifest_is_that_of_its_files(
    files: dict[str, str], first: dict[str, str | None], second: dict[str, str | None]
) -> None:
    plain = Manifest(files)
    once = plain.but(first)
    twice = once.but(second)
    for changed in (once, twice):
        whole = Manifest(dict(changed.files))
        assert changed == whole
        assert changed.digest == whole.digest
        assert changed.part(READ) == whole.part(READ)
        assert changed.part(READ).digest == whole.part(READ).digest
        for other in (plain, once, twice):
            apart = Manifest(dict(other.files))
            differing = sorted(path for path in PATHS if whole.files.get(path) != apart.files.get(path))
            assert changed.differing(other) == differing
            assert [changed.differing(apart) for _ in "ab"] == [differing] * 2


def test_a_part_is_the_same_one_where_a_patch_changes_nothing_of_it() -> None:
    plain = Manifest({"Makefile": "100644 a", "fs/open.c": "100644 b"})
    assert plain.but({"fs/open.c": "100644 c"}).part(READ) is plain.part(READ)


def test_what_is_kept_is_read_again_where_the_file_has_changed(tmp_path: Path) -> None:
    place, manifest = tmp_path / "manifest.json", Manifest({"Makefile": "100644 a"})
    keep_manifest(manifest, place)
    assert kept_manifest(place) is manifest
    place.write_text('{"Makefile": "100644 b", "Kconfig": "100644 c"}')
    changed = kept_manifest(place)
    assert changed == Manifest({"Makefile": "100644 b", "Kconfig": "100644 c"})
    place.unlink()
    assert kept_manifest(place) is None
