"""Errors about bundles: writing one, reading somebody else's, its signature."""

from pathlib import Path

from ktrial.errors import KtrialError


class BundleError(KtrialError):
    """Whatever goes wrong with a bundle."""


class BadBundle(BundleError):
    """A file that was named is no bundle that can be read, or something was asked of it that it has not."""

    exit_code = 2


class NotABundle(BadBundle):
    """The file is none that ktrial wrote."""

    hint = "a bundle is a zip archive as `ktrial bundle STUDY -o FILE` writes it; nothing was taken of this"

    def __init__(self, file: Path, problem: str) -> None:
        super().__init__(f"{file} is not a bundle of ktrial's: {problem}.")


class BundleTooLarge(BadBundle):
    """More than is read of a stranger's bundle."""

    hint = "nothing was unpacked"

    def __init__(self, file: Path, subject: str, size: str, most: object, *, unit: str = "are") -> None:
        super().__init__(f"Bundle {file} is too large: {subject} {size}, and at most {most} {unit} read.")


class BundleDamaged(BundleError):
    """Something in the bundle is not what its list of digests says, or makes no sense."""

    hint = "nothing is said from it; ask its author for another copy"

    def __init__(self, file: Path, problem: str) -> None:
        super().__init__(f"Bundle {file} is damaged or was changed: {problem}.")


class BundleUnreadable(BadBundle):
    """The file cannot be read."""

    hint = "name a file that ktrial bundle wrote"

    def __init__(self, file: Path, error: OSError) -> None:
        super().__init__(f"Bundle {file} cannot be read: {error.strerror or error}.")


class BundleNotWritten(BundleError):
    """The file cannot be written."""

    hint = "name another place: -o FILE"

    def __init__(self, file: Path, problem: object, *, hint: str = "") -> None:
        super().__init__(f"Bundle {file} cannot be written: {problem}.", hint=hint)


class SignatureWrong(BundleError):
    """The bundle's signature does not hold."""

    def __init__(self, file: Path, problem: str, signers: Path) -> None:
        super().__init__(
            f"Bundle {file}: its signature does not hold: {problem}.",
            hint=f"it was changed after it was signed, or who signed it is not in {signers}; nothing is "
            "said from it",
        )


class NotSignable(BundleError):
    """The bundle cannot be signed with this key."""

    hint = "--sign takes an OpenSSH key, such as ~/.ssh/id_ed25519; ssh-keygen comes with OpenSSH's client"

    def __init__(self, file: Path, problem: str) -> None:
        super().__init__(f"Bundle {file} cannot be signed: {problem}.")


class HostFilesNamed(BadBundle):
    """Its study takes files of this system into guests, which nobody has allowed."""

    hint = "where you have them, and they may be read: --allow-host-files; a guest is all that they reach"

    def __init__(self, file: Path, files: str) -> None:
        super().__init__(
            f"Bundle {file}: its study takes files of this system into guests, and they are not in it: "
            f"{files}."
        )
