"""Recorded sweeps that ship with the package, and where each came from (see ``SOURCES.md``)."""
