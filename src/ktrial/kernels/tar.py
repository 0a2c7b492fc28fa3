"""Python's tarfile, with filters against paths that lead outside: Debian 12's Python 3.11.2 has none."""

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING or sys.version_info >= (3, 12):
    import tarfile
else:
    from backports import tarfile

__all__ = ["tarfile"]
