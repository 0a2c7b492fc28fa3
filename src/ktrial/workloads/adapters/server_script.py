"""Benchmarks of servers: a shell script starts the server in a scratch directory, loads it, and ends it.

All in one run, because nothing that a run starts outlives it. The script's words are positional parameters:
no value becomes part of its text.
"""

from ktrial.workloads.adapter import Program

SHELL = Program("sh", "dash", ("-c", ":"), r"$^(.)")

PROLOGUE = """set -eu
scratch=$(mktemp -d /tmp/ktrial-server-XXXXXX)
trap 'stop_server; rm -rf "$scratch"' EXIT
stop_server() { :; }
fail() { echo "$1" >&2; exit 1; }
"""
"""A directory that is removed at the end, whatever happens; `stop_server` is the script's own to define."""
