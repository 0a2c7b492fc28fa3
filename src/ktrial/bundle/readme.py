"""The page in a bundle that tells a stranger what it is, and what to do with it."""

from ktrial.bundle.contents import BundleContents, KernelEntry
from ktrial.bundle.signature import NAMESPACE
from ktrial.format.sanitize import one_line
from ktrial.model.study import REAL_MACHINES
from ktrial.model.study_record import StudyRecord


def text(record: StudyRecord, contents: BundleContents) -> str:
    """As Markdown, in lines that can also be read as they are."""
    parts = (_head(record, contents), _again(contents), _inside(), _kernels(contents), _rights(contents))
    return "\n".join(parts)


def _head(record: StudyRecord, contents: BundleContents) -> str:
    kinds = {"exact": "exact mode: the same numbers to the last digit on any machine"}
    measured = kinds.get(contents.machine, f"machine {contents.machine}: the statistics of repeated trials")
    return f"""# {_plain(contents.study)}: a study of Linux kernels, with all that it measured

This is a bundle of **ktrial** {contents.ktrial}, which runs controlled trials on Linux kernels.

Question: {_plain(record.study.question) or "none was written down"}

Answer: {_plain(record.result.answer)}

It comes from {contents.trials} of {contents.planned} planned trials, measured in {measured}.
"""


def _again(contents: BundleContents) -> str:
    if contents.machine in REAL_MACHINES:
        again = "It was measured on its author's machine itself; `ktrial run study.toml` repeats it on yours."
    else:
        again = "`ktrial replicate` runs all of it again in guests, and compares every number."
    return f"""## Check it

    ktrial show FILE.zip          the verdicts, worked out anew from the trials in here
    ktrial replicate FILE.zip     the same trials on your machine, compared digit by digit

{again}

Without ktrial: `report.html` shows the result in a browser, `sha256sum -c manifest-sha256.txt`
compares every file, and where there is a signature

    ssh-keygen -Y verify -f SIGNERS -I WHO -n {NAMESPACE} -s manifest-sha256.txt.sig < manifest-sha256.txt

says whether WHO of your file of allowed signers made it (ssh-keygen(1)).
"""


def _inside() -> str:
    return """## What is inside

| file | what it is |
| --- | --- |
| `study.toml`, `study.json` | the study: for people and `ktrial run`, and exactly as it was run |
| `trials/` | every trial: samples, counters, settings read back, console, all that can change a result |
| `profiles/`, `series/` | instructions by kernel function, and what was read over time, of each trial |
| `result.json`, `report.html`, `report.md` | the verdicts that came of it, and the page |
| `kernel-differences.json` | what differs between the kernels: options, packages, compilers |
| `bundle.json` | kernels by digest with what obtains them, guests' programs, versions of ktrial and QEMU |
| `packages.txt` | the Python packages that ktrial ran with when the bundle was made |
| `patches/`, `kernels/` | patches by digest; the kernels themselves, where the author put them in |
| `ro-crate-metadata.json` | the same for machines, as RO-Crate 1.1 has it |
| `manifest-sha256.txt` | the digest of every other file |
"""


def _kernels(contents: BundleContents) -> str:
    rows = "\n".join(_kernel(each) for each in contents.kernels)
    return f"## Kernels\n\n{rows or 'None is known.'}\n"


def _kernel(entry: KernelEntry) -> str:
    if not entry.digest:
        return f"- `{_plain(entry.asked)}` could not be had: no trial ran on it."
    where = "it is in here" if entry.files else ""
    obtain = f"`ktrial kernel add {entry.obtain}` brings it" if entry.obtain else ""
    how = "; ".join(filter(None, (where, obtain))) or "no command brings it: its author has it"
    what = f"Linux {entry.release}, {entry.package} (SHA-256 {entry.digest})"
    return f"- `{_plain(entry.asked)}` is {_plain(what)}: {how}."


def _rights(contents: BundleContents) -> str:
    data = f"What was measured: {contents.licence}." if contents.licence else _NO_LICENCE
    kernels = _KERNELS if any(each.files for each in contents.kernels) else ""
    page = "The page's scripts and style sheets are ktrial's: GPL-2.0-or-later."
    return f"## Licences\n\n{data} {page}{kernels}\n"


_NO_LICENCE = "What was measured: its author chose no licence, so ask before you publish it elsewhere."
_KERNELS = (
    " The kernels in `kernels/` are GPL-2.0-only with the Linux system call note; the packages named above "
    "are built from sources that their distribution offers under the same names and versions."
)


def _plain(text: str) -> str:
    """On one line, and no markup."""
    return one_line(text).replace("<", "&lt;").replace("`", "'").replace("|", "/")
