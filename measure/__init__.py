"""What a call did cost: workloads, controls, probes, compiled-program facts, timing, child processes."""
