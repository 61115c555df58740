"""Do intervals, sets and tests hold what they promise? Simulated sweeps, answered as measured ones are."""
