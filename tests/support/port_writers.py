"""A hostile guest's program: it writes what it likes to the port by which the agent reports."""

import struct
from base64 import b64encode

from ktrial.target import Push, Run, Step

_BASE = 0x400000
_HEADERS = 64 + 56
_IOPL = bytes.fromhex("b8ac000000 bf03000000 0f05")  # mov eax, 172; mov edi, 3; syscall
_PORT = bytes.fromhex("bae9000000")  # mov edx, 0xe9
_LEAVE = bytes.fromhex("b83c000000 31ff 0f05")  # mov eax, 60; xor edi, edi; syscall
_PATH = "/port-writer"


def port_writer(first: bytes, endless: bytes = b"") -> tuple[Step, ...]:
    """Steps that put the program there and run it: it writes the one once, the other again and again."""
    push = Push(path=_PATH, base64=b64encode(_program(first, endless)).decode(), mode=0o755)
    return (push, Run(argv=(_PATH,)))


def mark_forger() -> tuple[Step, ...]:
    """Steps that put a program there and run it that marks another run, as only the agent should."""
    return _steps(_marks(4, 5, 6) + _LEAVE)


def endless_marker() -> tuple[Step, ...]:
    """Steps that put a program there and run it that marks one region after the other."""
    marks = _marks(1, 2)
    return _steps(marks + b"\xeb" + struct.pack("<b", -(len(marks) + 2)))


def _marks(*numbers: int) -> bytes:
    """Those of crates/wire/src/marks.rs."""
    return b"".join(b"\x0f\x1f\x80" + (0x4B54_0000 + number).to_bytes(4, "little") for number in numbers)


def _steps(instructions: bytes) -> tuple[Step, ...]:
    push = Push(path=_PATH, base64=b64encode(_executable(instructions)).decode(), mode=0o755)
    return (push, Run(argv=(_PATH,)))


def _program(first: bytes, endless: bytes) -> bytes:
    start = _IOPL + _PORT
    written = len(_outs(0, 0))
    data = _BASE + _HEADERS + len(start) + 2 * written + len(_LEAVE)
    again = b"\xeb" + struct.pack("<b", -(written + 2)) if endless else b""  # jmp
    code = start + _outs(data, len(first)) + _outs(data + len(first), len(endless)) + again
    return _executable(code + _LEAVE[: len(_LEAVE) - len(again)] + first + endless)


def _executable(content: bytes) -> bytes:
    """A static program for x86-64, without a compiler: instructions from its first byte on."""
    identity = b"\x7fELF" + bytes((2, 1, 1, 0)) + bytes(8)
    head = struct.pack(
        "<HHIQQQIHHHHHH", 2, 62, 1, _BASE + _HEADERS, 64, 0, 0, 64, 56, 1, 0, 0, 0
    )  # an executable for x86-64 with one program header
    size = _HEADERS + len(content)
    segment = struct.pack("<IIQQQQQQ", 1, 5, 0, _BASE, _BASE, size, size, 4096)
    return identity + head + segment + content


def _outs(address: int, count: int) -> bytes:
    # mov rsi, address; mov ecx, count; rep outsb
    return b"\x48\xbe" + struct.pack("<Q", address) + b"\xb9" + struct.pack("<I", count) + b"\xf3\x6e"
