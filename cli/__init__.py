"""Parses, calls, prints: the only room with print and exit codes."""
