"""Kernel images: the ELF file inside, its symbols, and the source file of each function."""
