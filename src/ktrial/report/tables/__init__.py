"""The tables of reports: a file each, for all outputs."""
