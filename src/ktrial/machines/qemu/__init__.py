"""What machines in QEMU share: its program, processes, QMP, the guest's first file system and its report."""
