"""Errors about bundles: writing one, reading somebody else's, its signature."""

from ktrial.errors import KtrialError
from ktrial.kernels.errors import KernelError


class BundleError(KtrialError):
    """Bundle {file}: {problem}"""


class BundleUnreadable(BundleError):
    """Bundle {file} cannot be read: {problem}."""

    hint = "name a file that ktrial bundle wrote"
    exit_code = 2


class NotABundle(BundleError):
    """{file} is not a bundle of ktrial's: {problem}."""

    hint = "a bundle is a zip archive as `ktrial bundle STUDY -o FILE` writes it; nothing was taken of this"
    exit_code = 2


class BundleTooLarge(BundleError):
    """Bundle {file} is too large: {what} {found}, and at most {most} {are} read."""

    hint = "nothing was unpacked"
    exit_code = 2


class BundleDamaged(BundleError):
    """Bundle {file} is damaged or was changed: {problem}."""

    hint = "nothing is said from it; ask its author for another copy"


class BundleNewer(BundleError):
    """Bundle {file} was written by a newer ktrial (its format is {found}, this ktrial knows {known})."""

    hint = "use ktrial {version} or later"
    exit_code = 2


class BundleNotWritten(BundleError):
    """Bundle {file} cannot be written: {problem}."""

    hint = "name another place: -o FILE"


class NothingToBundle(BundleError):
    """Study {study} cannot be bundled: {problem}."""

    hint = "{advice}"


class SignatureError(BundleError):
    """Bundle {file}: {problem}"""


class NotSigned(SignatureError):
    """Bundle {file} is not signed, and a signature was asked for."""

    hint = "ask its author for a signed one (ktrial bundle --sign KEY), or leave --signers out"


class SignatureWrong(SignatureError):
    """Bundle {file}: its signature does not hold: {problem}."""

    hint = "it was changed after it was signed, or who signed it is not in {signers}; nothing is said from it"


class NotSignable(SignatureError):
    """Bundle {file} cannot be signed: {problem}."""

    hint = "--sign takes an OpenSSH key, such as ~/.ssh/id_ed25519; ssh-keygen comes with OpenSSH's client"


class NotReplicable(BundleError):
    """Bundle {file} is not run again: {problem}."""

    hint = "read study.toml in it, and if you trust that: ktrial run study.toml"


class HostFilesNamed(BundleError):
    """Bundle {file}: its study takes files of this system into guests, and they are not in it: {files}."""

    hint = "where you have them, and they may be read: --allow-host-files; a guest is all that they reach"
    exit_code = 2


class NoSuchWorkloadInBundle(BundleError):
    """Bundle {file} has no workload {workload}."""

    hint = "it has {there}"
    exit_code = 2


class KernelNotHad(KernelError):
    """Kernel {name} cannot be had for the replication: {problem}."""

    hint = "ask the bundle's author for one that has it (ktrial bundle --with-kernels)"
