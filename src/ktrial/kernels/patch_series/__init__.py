"""Series of patches, read from a git tree, a mailbox, quilt's or a source package; nothing is built here."""

from ktrial.kernels.patch_series.commits import as_patch, series_in_git, undoing
from ktrial.kernels.patch_series.mailbox import series_in_mailbox
from ktrial.kernels.patch_series.packaged import is_packaged, series_in_package
from ktrial.kernels.patch_series.quilt import series_in_quilt

__all__ = [
    "as_patch",
    "is_packaged",
    "series_in_git",
    "series_in_mailbox",
    "series_in_package",
    "series_in_quilt",
    "undoing",
]
