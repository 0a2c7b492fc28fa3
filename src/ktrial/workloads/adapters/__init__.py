"""Installed programs as workloads, one file a program."""
