"""What is watched while a workload runs: counters read before and after."""
