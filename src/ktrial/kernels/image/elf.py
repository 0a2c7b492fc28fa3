"""What ktrial must know of an ELF vmlinux: that it is one, whole, and whether QEMU can start it."""

import io
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from elftools.common.exceptions import ELFError
from elftools.construct import ConstructError
from elftools.elf.constants import SH_FLAGS
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection
from elftools.elf.segments import NoteSegment

from ktrial.kernels.errors import ImageTruncated, NotAKernel, WrongArchitecture

ELF_MAGIC = b"\x7fELF"
_XEN_PHYS32_ENTRY = 18
"""XEN_ELFNOTE_PHYS32_ENTRY (xen/interface/elfnote.h): the address at which PVH guests start, 32-bit mode."""
_KINDS = {"ET_REL": "an ELF object or kernel module", "ET_DYN": "an ELF program or library"}


def check_elf(path: Path, data: bytes) -> None:
    """Raise NotAKernel, WrongArchitecture or ImageTruncated unless `data` is a whole x86-64 executable."""
    elf = _open(path, data)
    if elf["e_type"] != "ET_EXEC":
        raise NotAKernel(
            name=path, path=path, found=_KINDS.get(elf["e_type"], f"ELF of kind {elf['e_type']}")
        )
    if elf["e_machine"] != "EM_X86_64" or elf.elfclass != 64:
        raise WrongArchitecture(name=path, path=path, architecture=elf.get_machine_arch())
    end = _end(elf)
    if len(data) < end:
        raise ImageTruncated(name=path, path=path, present=len(data), promised=f"at least {end}")


def memory_end(file: BinaryIO) -> int:
    """The highest address that its segments fill. Raises ELFError, ConstructError."""
    loaded = ELFFile(file).iter_segments(type="PT_LOAD")
    return max((int(each["p_paddr"] + each["p_memsz"]) for each in loaded), default=0)


def has_pvh_entry(data: bytes) -> bool:
    """Whether QEMU can start this vmlinux directly: a `Xen` note of type 18 in a PT_NOTE segment.

    QEMU reads it in hw/i386/x86-common.c (read_pvh_start_addr); Linux writes it with CONFIG_PVH.
    """
    return any(
        note["n_name"] == "Xen" and note["n_type"] in {_XEN_PHYS32_ENTRY, "XEN_ELFNOTE_PHYS32_ENTRY"}
        for segment in ELFFile(io.BytesIO(data)).iter_segments(type="PT_NOTE")
        if isinstance(segment, NoteSegment)
        for note in segment.iter_notes()
    )


def symbols_of(data: bytes) -> Iterator[tuple[int, str, str]]:
    """Address, kind (as nm prints it: `T`, `D`; lower case: local) and name, from the symbol table if any."""
    elf = ELFFile(io.BytesIO(data))
    for section in elf.iter_sections():
        if not isinstance(section, SymbolTableSection):
            continue
        for symbol in section.iter_symbols():
            if symbol.name and isinstance(symbol["st_shndx"], int):
                yield (
                    symbol["st_value"],
                    _letter(elf, symbol["st_shndx"], symbol["st_info"]["bind"]),
                    symbol.name,
                )


def _letter(elf: ELFFile, section: int, bind: str) -> str:
    flags = elf.get_section(section)["sh_flags"]
    letter = "T" if flags & SH_FLAGS.SHF_EXECINSTR else "D" if flags & SH_FLAGS.SHF_WRITE else "R"
    return letter.lower() if bind == "STB_LOCAL" else "W" if bind == "STB_WEAK" else letter


def _open(path: Path, data: bytes) -> ELFFile:
    try:
        return ELFFile(io.BytesIO(data))
    except (ELFError, ConstructError) as error:
        raise ImageTruncated(
            name=path, path=path, present=len(data), promised="a whole ELF header"
        ) from error


def _end(elf: ELFFile) -> int:
    """The last byte that the headers speak of."""
    tables = [
        elf["e_phoff"] + elf["e_phnum"] * elf["e_phentsize"],
        elf["e_shoff"] + elf["e_shnum"] * elf["e_shentsize"],
    ]
    if max(tables) > elf.stream_len:
        return int(max(tables))
    ends = [segment["p_offset"] + segment["p_filesz"] for segment in elf.iter_segments()]
    return int(max([*tables, *ends]))
