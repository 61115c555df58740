"""Whether the times are what the statistics take them for, and which rules of reporting are met."""
