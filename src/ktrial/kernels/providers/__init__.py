"""Providers of kernels: one file each, found by its object `PROVIDER`."""
