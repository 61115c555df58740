"""What to measure next, how much of it, and when to stop."""
