"""Takes a published change back in Debian's image, where one byte does it, and writes the study of it.

    .venv/bin/python -m docs.measured.published_image RESULTS

RESULTS then has the image and 4ed4379881aa.toml, a study of it beside Debian's own.
"""

import sys
from pathlib import Path

from docs.measured.changed_kernels import ChangedByte, changed
from docs.measured.pages import ROOT

COMMIT = "4ed4379881aa"
_KERNEL = "debian:6.12"
_JUMP = ChangedByte(
    name=COMMIT,
    # do_shared_fault(): test map_pages; je, to where the lock of the mapping is given up: it becomes jne.
    code=rb"\x48\x85\xd2\x0f\x84(?=\x3c\x02\x00\x00\x48\x89\xdf\xe8....\x41\x89\xc4\xa9\x73\x0d\x00\x00)",
    becomes=0x85,
)


def study_in(place: Path) -> Path:
    """Make the image and the study below `place`. Raises NotMeasured where the code is another one."""
    image = changed(_KERNEL, _JUMP, place)
    template = (ROOT / "studies" / "published" / f"{COMMIT}.toml").read_text(encoding="utf-8")
    file = place / f"{COMMIT}.toml"
    file.write_text(template.replace("path:without", image), encoding="utf-8")
    return file


if __name__ == "__main__":
    print(study_in(Path(sys.argv[1]).resolve()))
