"""The checksum of a whole bzImage, which tools/build of the kernel's own tree writes at its end.

Documentation/arch/x86/boot.rst, section 'The image checksum': CRC-32 with all bits set before and none turned
after, so that it is 0 over all that the setup header calls the image. A distribution that signs the image for
Secure Boot changes two fields of its PE header later: the PE file's own checksum, and where the signature is.
"""

import re
import struct
import zlib

_PE_AT = 0x3C
_PE_CHECKSUM, _PE_SIGNATURE = 24 + 64, 24 + 144
"""From the PE header's start, of a PE32+ file: the optional header begins behind 24 bytes."""
_LAST_WITH = (6, 14)
"""'x86/boot: Drop CRC-32 checksum and the build tool that generates it' took it away after that."""
_ALL_BITS = 0xFFFFFFFF


def has_checksum(release: str) -> bool:
    """Whether kernels of this release have one."""
    number = re.match(r"(\d+)\.(\d+)", release)
    return number is not None and (int(number[1]), int(number[2])) <= _LAST_WITH


def has_wrong_checksum(image: bytes, release: str) -> bool:
    """Whether the image (up to its header's syssize) has a checksum, and it is not right."""
    return has_checksum(release) and zlib.crc32(_unsigned(image)) != _ALL_BITS


def _unsigned(image: bytes) -> bytes:
    """As it was before it was signed."""
    start = struct.unpack_from("<I", image, _PE_AT)[0]
    if image[start : start + 4] != b"PE\0\0" or start + _PE_SIGNATURE + 8 > len(image):
        return image
    plain = bytearray(image)
    plain[start + _PE_CHECKSUM : start + _PE_CHECKSUM + 4] = bytes(4)
    plain[start + _PE_SIGNATURE : start + _PE_SIGNATURE + 8] = bytes(8)
    return bytes(plain)
