"""Laws beside their rivals, and two sweeps side by side."""
