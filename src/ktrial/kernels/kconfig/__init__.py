"""A kernel's configuration: what is set, what Kconfig files define, and why an option did not take."""
