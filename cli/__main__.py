"""``python -m breakeven.cli`` is the command ``breakeven``."""

from .app import main

main()
