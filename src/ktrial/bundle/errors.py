"""Errors about bundles: writing one, reading somebody else's, its signature."""

from ktrial.errors import KtrialError


class BundleError(KtrialError):
    text = "Bundle {file}: {problem}"


class BundleUsageError(BundleError):
    """The command was given something that it cannot take."""

    exit_code = 2


class NotABundle(BundleError):
    text = "{file} is not a bundle of ktrial's: {problem}."
    hint = "a bundle is a zip archive as `ktrial bundle STUDY -o FILE` writes it; nothing was taken of this"
    exit_code = 2


class BundleTooLarge(BundleError):
    text = "Bundle {file} is too large: {what} {found}, and at most {most} {are} read."
    hint = "nothing was unpacked"
    exit_code = 2


class BundleDamaged(BundleError):
    text = "Bundle {file} is damaged or was changed: {problem}."
    hint = "nothing is said from it; ask its author for another copy"


class SignatureError(BundleError):
    text = "Bundle {file}: {problem}"
