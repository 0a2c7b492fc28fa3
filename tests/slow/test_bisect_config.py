"""`ktrial bisect config` on kernels: Debian's source 6.1, of which two configurations differ in many options.

Nearly all of them are small: character sets, checksums, file systems that nobody mounts. What was planted
among them has to be found, with as few kernels as was promised.
"""

import json
import math
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.guest, pytest.mark.timeout(14400)]

SOURCE = ("--source", "debian:linux-source-6.1")
_PAGES = (437, 737, 775, 850, 852, 855, 857, 860, 861, 862, 863, 864, 865, 866, 869, 874, 932, 936, 949, 950)
_MAC = (
    *("ROMAN", "CELTIC", "CENTEURO", "CROATIAN", "CYRILLIC", "GAELIC", "GREEK"),
    *("ICELAND", "INUIT", "ROMANIAN", "TURKISH"),
)
CHARACTER_SETS = (
    "NLS",
    *(f"NLS_CODEPAGE_{number}" for number in (*_PAGES, 1250, 1251)),
    *(f"NLS_ISO8859_{number}" for number in (1, 2, 3, 4, 5, 6, 7, 8, 9, 13, 14, 15)),
    *(f"NLS_MAC_{name}" for name in _MAC),
    *("NLS_ASCII", "NLS_UTF8", "NLS_KOI8_R", "NLS_KOI8_U"),
)
OTHERS = (
    *("CRC4", "CRC7", "CRC8", "CRC64", "CRC_ITU_T", "CRC_T10DIF", "LIBCRC32C", "XZ_DEC", "MISC_FILESYSTEMS"),
    *("MINIX_FS", "ROMFS_FS", "BFS_FS", "EFS_FS", "QNX4FS_FS", "QNX6FS_FS", "OMFS_FS", "VXFS_FS", "SYSV_FS"),
)


def _bisected(directory: Path, before: str, after: str) -> dict[str, Any]:
    command = [
        *(sys.executable, "-c", "from ktrial.cli.main import main; main()", "bisect", "config"),
        *(before, after, *SOURCE, "--workload", "fork", "--perturbations", "2", "--json"),
    ]
    store = {"KTRIAL_STORE": str(directory / "ktrial.db")}
    done = subprocess.run(command, env=os.environ | store, stdout=subprocess.PIPE, text=True, check=True)
    print(done.stdout)
    told: dict[str, Any] = json.loads(done.stdout)
    return told


def _members(result: dict[str, Any]) -> list[set[str]]:
    return [
        {item["name"] for member in cause["members"] for item in member["items"]}
        for cause in result["causes"]
    ]


def _with(options: tuple[str, ...]) -> str:
    return "+".join(["guest", *(option if "=" in option else f"{option}=y" for option in options)])


def test_a_planted_option_is_found_among_sixty_within_the_promised_builds(tmp_path: Path) -> None:
    after = _with((*CHARACTER_SETS, *OTHERS, "SLUB_DEBUG_ON"))
    result = _bisected(tmp_path, "guest", after)
    assert result["differing"] >= 60
    assert _members(result) == [{"SLUB_DEBUG_ON"}]
    assert result["found"]
    assert result["builds"] <= 2 * math.log2(result["groups"]) + 6
    (share,) = result["causes"][0]["shares"].values()
    assert share == pytest.approx(1.0, abs=0.05)
    (explanation,) = result["explanations"].values()
    functions = {row["function"] for row in explanation["functions"]}
    assert "memchr_inv" in functions, "what looks whether poison is still there"


def test_a_pair_that_only_matters_together_is_found_as_a_pair(tmp_path: Path) -> None:
    """`slub_debug=` on a built-in command line does nothing without SLUB_DEBUG; Kconfig does not know."""
    before = "guest+SLUB_DEBUG=n"
    planted = ("SLUB_DEBUG", "CMDLINE_BOOL", "CMDLINE=slub_debug=FZP")
    result = _bisected(tmp_path, before, _with((*CHARACTER_SETS[:24], *planted)))
    assert _members(result) == [{"SLUB_DEBUG", "CMDLINE"}]
    (cause,) = result["causes"]
    assert {item["name"] for item in cause["needed"]} <= {"CMDLINE_BOOL"}
    for member in cause["members"]:
        assert max(abs(share) for share in member["alone"].values()) < 0.25
