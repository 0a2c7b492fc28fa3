"""Slurm's two commands that submit and cancel, for jobs that run at once on this system."""

import os
from pathlib import Path

_SBATCH = """#!/bin/sh
here=$(dirname "$0")
if grep -q '^#SBATCH -p nowhere' "$1"; then
    echo 'sbatch: error: invalid partition specified: nowhere' >&2
    exit 1
fi
cp "$1" "$here/job.$$"
setsid sh "$here/job.$$" </dev/null >/dev/null 2>&1 &
echo $! >>"$here/submitted"
echo "Submitted batch job $!"
"""
_SCANCEL = """#!/bin/sh
kill -TERM -- "-$1"
"""


def fake_slurm(directory: Path) -> Path:
    """The directory with both, to be first in PATH."""
    directory.mkdir()
    for name, text in (("sbatch", _SBATCH), ("scancel", _SCANCEL)):
        (directory / name).write_text(text)
        (directory / name).chmod(0o755)
    return directory


def submitted(directory: Path) -> list[int]:
    """The numbers of the jobs: their process groups."""
    path = directory / "submitted"
    return [int(line) for line in path.read_text().split()] if path.exists() else []


def runs(job: int) -> bool:
    """Whether anything of it is alive."""
    try:
        os.killpg(job, 0)
    except ProcessLookupError:
        return False
    return True
