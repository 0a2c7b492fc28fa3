"""Kernels that were obtained, kept by content."""
