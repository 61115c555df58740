"""Eight forced host devices for every test that imports jax; set before any does."""

import os
import signal

os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["JAX_NUM_CPU_DEVICES"] = "8"

# A shell that starts the tests in the background has them ignore Ctrl-C, and so would the processes they start.
signal.signal(signal.SIGINT, signal.default_int_handler)
