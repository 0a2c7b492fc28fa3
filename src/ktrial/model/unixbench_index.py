"""The twelve tests of UnixBench's index, and what they are measured against."""

BASELINES = {
    "Dhrystone 2 using register variables": 116700.0,
    "Double-Precision Whetstone": 55.0,
    "Execl Throughput": 43.0,
    "File Copy 1024 bufsize 2000 maxblocks": 3960.0,
    "File Copy 256 bufsize 500 maxblocks": 1655.0,
    "File Copy 4096 bufsize 8000 maxblocks": 5800.0,
    "Pipe Throughput": 12440.0,
    "Pipe-based Context Switching": 4000.0,
    "Process Creation": 126.0,
    "Shell Scripts (1 concurrent)": 42.4,
    "Shell Scripts (8 concurrent)": 6.0,
    "System Call Overhead": 15000.0,
}
"""Test → the result of the SPARCstation 20-61 that counts as an index of 10 (UnixBench's pgms/index.base)."""
SCORE = "System Benchmarks Index Score"
"""The geometric mean of the twelve indices."""
