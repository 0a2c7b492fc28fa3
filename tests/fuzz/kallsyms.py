"""The text of /proc/kallsyms, as a guest tells it, and System.map, as a package brings it.

An input begins with a byte that says whose text it is: 0, a guest's; else that of System.map.
"""

from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory

from ktrial.kernels.errors import SymbolsUnknown
from ktrial.kernels.symbols import function_files, parse_symbols, save_symbols, symbols_in
from ktrial.model.kernel import Kernel, Origin

WORDS = (
    *(b"ffffffff81000000 T ", b"00000000", b"\t[ext4]\n", b" t ", b"_text", b"_etext", b"__sched_text_start"),
    *(b"__cpuidle_text_end", b" W ", b" D ", b"\n", b"\r\n", b"\xc2\x85", b"\xe2\x80\xa8", b"\x1b[2J"),
)
_COPIES = 1000
"""A text that is short stands so often: fewer symbols are no kernel's."""
_NUMBERS = count()


def read(data: bytes) -> None:
    """Read the symbols, keep them, and ask for the functions' files."""
    is_file = data[:1] != b"\0"
    text = data[1:].decode("ascii" if is_file else "utf-8", "replace")
    if is_file:  # it is read with any line ends
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    symbols = parse_symbols(text)
    assert [symbol.address for symbol in symbols] == sorted(symbol.address for symbol in symbols)
    with TemporaryDirectory() as directory:
        kernel = _kernel(Path(directory))
        if data[:1] == b"\0":
            _keep(kernel, text)
        else:
            (Path(directory) / "System.map").write_bytes(data[1:])
        try:
            assert symbols_in(kernel).at(1 << 63) is None or symbols
        except SymbolsUnknown:
            return
        function_files(kernel)


def _keep(kernel: Kernel, text: str) -> None:
    """The documented errors are ValueError itself, not what is made of it."""
    if 0 < len(text) < _COPIES:
        text = "\n".join([text] * _COPIES)
    try:
        save_symbols(kernel, text)
    except ValueError as error:
        if type(error) is not ValueError:
            raise


def _kernel(directory: Path) -> Kernel:
    return Kernel(
        name=f"fuzz-{next(_NUMBERS)}",
        release="6.1.0",
        origin=Origin(provider="path", source="/fuzz"),
        digest="0" * 64,
        image=directory / "vmlinuz",
    )
