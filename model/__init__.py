"""What a call should cost: formulas, terms, laws, design matrices, a simulator. No clock, no device, no file."""
