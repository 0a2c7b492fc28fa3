"""Counters that the kernel keeps in files, one file each."""
