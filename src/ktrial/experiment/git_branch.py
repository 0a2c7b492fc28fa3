"""The kernel at the tip of a git branch, built where it is new."""

import subprocess
from pathlib import Path

from ktrial.analysis.history.errors import NothingToWatch
from ktrial.kernels import Progress
from ktrial.kernels.build import build, requested
from ktrial.kernels.errors import KernelError
from ktrial.model.kernel import Kernel

_SECONDS = 1800.0


def branch_kernel(directory: Path, branch: str, progress: Progress) -> Kernel:
    """Fetch what the tree's remotes have, and build the branch's commit with the configuration `guest`.

    `branch`: what git resolves (`master`, `origin/linux-6.12.y`). Raises NothingToWatch, BuildError, and
    KernelError where the remotes do not answer, which may be better tomorrow.
    """
    what = f"git:{directory}@{branch}"
    if _git(directory, what, "remote"):
        progress("fetching what is new")
        _fetch(directory, what)
    commit = _git(directory, what, "rev-parse", "--verify", "--quiet", f"{branch}^{{commit}}")
    if not commit:
        raise NothingToWatch(what=what, problem=f"git knows no {branch}")
    return build(requested(f"git:{directory.absolute()}@{commit}", directory=Path.cwd()), progress)


def _fetch(directory: Path, what: str) -> None:
    try:
        _git(directory, what, "fetch", "--quiet", "--all")
    except NothingToWatch as error:
        raise KernelError(name=what, problem=f"git fetch: {error.facts['problem']}") from error


def _git(directory: Path, what: str, *arguments: str) -> str:
    try:
        done = subprocess.run(
            ["git", "-C", str(directory), *arguments],
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            timeout=_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NothingToWatch(what=what, problem=str(error)) from error
    if done.returncode and done.stderr.strip():
        raise NothingToWatch(what=what, problem=done.stderr.strip().splitlines()[-1])
    return done.stdout.strip()
