"""Which difference matters: the smallest set of differences between A and B that explains a measured one."""
