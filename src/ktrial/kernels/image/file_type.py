"""Say what a file is, when it is not an x86-64 kernel: the error that names it saves a search."""

_COMPRESSED = {
    b"\x1f\x8b": "a gzip file (unpack it first)",
    b"\xfd7zXZ\0": "an xz file (unpack it first)",
    b"\x28\xb5\x2f\xfd": "a zstd file (unpack it first)",
    b"BZh": "a bzip2 file (unpack it first)",
    b"!<arch>\ndebian": "a Debian package (give the vmlinuz inside it)",
    b"070701": "a cpio archive, such as an initrd",
    b"PK\x03\x04": "a zip archive",
    b"\xed\xab\xee\xdb": "an RPM package (give the vmlinuz inside it)",
    b"QFI\xfb": "a qcow2 disk image",
}


def other_architecture(data: bytes) -> str:
    """Name the architecture of a kernel image that is not for x86; empty where it is no such thing."""
    if data[4:8] == b"zimg" and data[:2] == b"MZ":
        # drivers/firmware/efi/libstub/zboot-header.S: MZ, zimg, payload's offset and size, its compression.
        method = data[24:56].split(b"\0")[0].decode("ascii", "replace") or "unknown compression"
        return f"arm64, RISC-V or LoongArch (an EFI zboot image, {method})"
    if data[0x38:0x3C] == b"ARM\x64":
        return "arm64"
    if data[0x38:0x3C] == b"RSC\x05":
        return "RISC-V"
    if data[0x24:0x28] in {b"\x18\x28\x6f\x01", b"\x01\x6f\x28\x18"}:
        return "32-bit ARM (a zImage)"
    if data[:4] == b"\x27\x05\x19\x56":
        return "another machine (a U-Boot uImage)"
    return ""


def what_it_is(data: bytes) -> str:
    """Describe a file that no kernel image starts like."""
    for magic, description in _COMPRESSED.items():
        if data.startswith(magic):
            return description
    if data[:2] == b"MZ":
        return "an EFI or Windows program without a Linux boot header"
    if data[0x1FE:0x200] == b"\x55\xaa":
        return "a boot sector or disk image without a Linux boot header"
    if _is_text(data[:4096]):
        first = data.splitlines()[0][:40].decode("utf-8", "replace")
        return f"a text file (it starts '{first}')"
    if len(data) < 0x250:
        return f"{len(data)} bytes long, shorter than a kernel's header"
    return f"data of an unknown kind (it starts {data[:4].hex(' ')})"


def _is_text(data: bytes) -> bool:
    try:
        text = data.decode("utf-8", "strict")
    except UnicodeDecodeError as error:
        # A character cut in two at the end of the sample is text all the same.
        if error.start < len(data) - 3:
            return False
        text = data[: error.start].decode()
    return all(character.isprintable() or character in "\n\r\t\f\x1b" for character in text)
