"""Programs that watch a run from outside: perf, bpftrace."""
