"""What is tried, and the packages whose branches guide a fuzzer there."""

from pathlib import Path

CORPUS = Path(__file__).parent / "corpus"
"""Inputs, below the target's name: seeds, and what fuzzers came upon."""
TARGETS = {
    "bundle": ("ktrial.bundle", "ktrial.format.sanitize", "ktrial.model.study", "zipfile"),
    "frames": ("ktrial.target", "ktrial.machines.qemu.frame_log"),
    "image": ("ktrial.kernels.image", "ktrial.kernels.symbols", "elftools"),
    "kallsyms": ("ktrial.kernels.symbols",),
    "mailbox": ("ktrial.kernels.patch_series", "ktrial.kernels.build.patches", "email"),
}
"""Modules here → the packages."""
