"""From the table to estimates, intervals, tests, crossover and optimum."""
