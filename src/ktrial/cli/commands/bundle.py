"""`ktrial bundle`: a study with all that it measured in one file, for others to check and repeat."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ktrial.cli.command_line import examples
from ktrial.cli.options.common import Json, StoredStudyName, StoreOption

if TYPE_CHECKING:
    from ktrial.bundle.writing import Written


@examples(
    "ktrial bundle quick -o quick.zip",
    "ktrial bundle quick -o quick.zip --with-kernels --sign ~/.ssh/id_ed25519",
)
def bundle(
    study: StoredStudyName = None,
    file: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="FILE", help="Write it here; else NAME.zip in this directory."
        ),
    ] = None,
    with_kernels: Annotated[
        bool, typer.Option("--with-kernels", help="Put the kernels' images and modules in, too.")
    ] = False,
    sign: Annotated[
        Path | None, typer.Option("--sign", metavar="KEY", help="Sign it with this OpenSSH key.")
    ] = None,
    licence: Annotated[
        str | None,
        typer.Option(
            "--licence", metavar="SPDX", help="The licence of what was measured, such as CC-BY-4.0."
        ),
    ] = None,
    json: Json = False,
    store: StoreOption = None,
) -> None:
    """Write a study, with all that it measured, as one file.

    Others check it: `ktrial replicate FILE` runs it again and compares every number. The same study gives the
    same bytes.
    """
    from ktrial.bundle.writing import Wanted, write_bundle
    from ktrial.cli.console import messages, print_json
    from ktrial.cli.options.stored_study import find, open_existing

    _check(licence)
    with open_existing(store) as opened, messages().status("") as status:
        stored = find(opened, study)
        path = file or Path(f"{stored.study.name}.zip")
        wanted = Wanted(with_kernels=with_kernels, licence=licence or "", key=sign)
        if sign:
            status.stop()  # ssh-keygen may ask for the key's passphrase
        written = write_bundle(opened, stored, path, wanted, status.update)
    if json:
        print_json(_data(written))
    else:
        _print(written)


def _check(licence: str | None) -> None:
    """Raise BadOption where that is no identifier of a licence."""
    import re

    from ktrial.cli.command_line import BadOption

    if licence and not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9.+-]{0,80}", licence):
        problem = f"'{licence}' is no SPDX identifier; allowed: such as CC-BY-4.0, CC0-1.0"
        raise BadOption(option="--licence", problem=problem)


def _data(written: "Written") -> dict[str, Any]:
    contents = written.contents
    return {
        "file": str(written.file),
        "bytes": written.size,
        "sha256": written.digest,
        "signed": written.signed,
        "study": contents.study,
        "trials": contents.trials,
        "planned": contents.planned,
        "kernels": [one.model_dump(mode="json", exclude={"origin"}) for one in contents.kernels],
        "host_files": list(contents.host_files),
        "licence": contents.licence,
    }


def _print(written: "Written") -> None:
    from ktrial.cli.console import messages, output, print_link
    from ktrial.format.number_format import counted

    contents = written.contents
    print_link("bundle", written.file, output())
    signed = "signed" if written.signed else "not signed"
    trials = counted(contents.trials, "trial").replace("\u00a0", " ")
    print(f"{trials}, {written.size} bytes, {signed}; sha256 {written.digest}")
    if contents.trials < contents.planned:
        messages().print(
            f"{contents.planned - contents.trials} planned trials have not ended: the bundle lacks them"
        )
    for kernel in contents.kernels:
        if kernel.digest and not (kernel.obtain or kernel.files):
            messages().print(f"no command brings {kernel.asked} elsewhere: --with-kernels puts it in")
    if contents.host_files:
        named = ", ".join(contents.host_files[:3])
        messages().print(f"files of this system are not in it, and others need their own: {named}")
    if not contents.licence:
        messages().print("it names no licence for what was measured: --licence CC-BY-4.0 would")
