"""The site of 50 results × 25 workloads, and a kernel's functions: kept, and read again."""

import shutil
import tempfile
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from tests.support.stored_results import MEASURED_WORKLOADS, RESULTS, a_store, fifty_results

from bench.row import Row, median, seconds
from ktrial.errors import KtrialError
from ktrial.experiment.explain import stored_explanations
from ktrial.kernels.kernel_registry import all_kernels
from ktrial.kernels.symbols import function_files
from ktrial.model.kernel import Kernel
from ktrial.report.site.site import build
from ktrial.store.store import open_store

ROUNDS = 3
LONGEST = 10.0
"""Seconds for the site, with nothing kept of its pages."""
MOST_CPU = 7.0
"""The same in processor time, which others' programs change less."""
NEEDS = "no kernel in the cache whose symbols are known: ktrial run quick"


def rows() -> Iterator[Row]:
    """A first build, and one where all pages are kept; the functions of one kernel."""
    with tempfile.TemporaryDirectory(prefix="bench-") as scratch:
        yield from _site(Path(scratch))
        yield _functions(Path(scratch))


def _site(directory: Path) -> Iterator[Row]:
    path = a_store(directory, *fifty_results())
    with open_store(str(path)) as store:

        def build_it() -> object:
            return build(store, directory / "site", explain=stored_explanations, notes=directory / "notes")

        what = f"site of {RESULTS} results × {len(MEASURED_WORKLOADS)} workloads"
        before = time.process_time()
        first = seconds(build_it)
        yield Row(what, first, most_seconds=LONGEST)
        yield Row(f"{what}: processor time", time.process_time() - before, most_seconds=MOST_CPU)
        yield Row(f"{what}: again", seconds(build_it), "the first time", first)


def _functions(directory: Path) -> Row:
    what = "a kernel's functions and their files, kept"
    kernel = _with_symbols()
    if kernel is None:
        return Row(what, 0.0, "read from symbols and image", None, least_ratio=4, note=NEEDS)
    shutil.copy(kernel.image.parent / "kallsyms", directory)
    # Another name for each round: one process asks once for a kernel.
    copies = [
        kernel.model_copy(update={"name": f"{n}", "image": directory / "vmlinuz"}) for n in range(ROUNDS)
    ]
    cold = seconds(lambda: function_files(kernel.model_copy(update={"image": directory / "vmlinuz"})))
    warm = median([seconds(partial(function_files, one)) for one in copies])
    return Row(what, warm, "read from symbols and image", cold, least_ratio=4)


def _with_symbols() -> Kernel | None:
    try:
        return next((one for one in all_kernels() if (one.image.parent / "kallsyms").is_file()), None)
    except KtrialError:
        return None
