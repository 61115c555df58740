"""Environment variables that change times, without the secrets that some of them carry."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping

from ..data.machines import LEFT_OUT

PREFIXES = (
    *("JAX_", "XLA_", "LIBTPU_", "TPU_", "PJRT_", "TF_CPP_", "TF_XLA_", "TF_GPU_"),
    *("NCCL_", "CUDA_", "NVIDIA_", "ROCR_", "HIP_", "RCCL_", "HSA_"),
    *("OMP_", "MKL_", "KMP_", "GOMP_", "OPENBLAS_", "GLOO_", "UCX_", "FI_", "OMPI_MCA_", "MPICH_"),
    *("MALLOC_", "LD_PRELOAD"),
)
"""Those of JAX and XLA, of accelerators, of thread pools, of transports, of the allocator."""

_SECRET_NAME = re.compile(
    r"TOKEN|SECRET|PASSW|PASSPHRASE|CREDENTIAL|AUTH|APIKEY|(^|[_-])(KEY|PWD)([_-]|$)", re.IGNORECASE
)
_SECRET_WORD = re.compile(r"\w+://[^/\s@]*:[^/\s@]*@", re.IGNORECASE)
_SECRET_TEXT = re.compile(r"\b(Bearer|Basic)\s", re.IGNORECASE)


def variables(environment: Mapping[str, str] = os.environ) -> tuple[str, ...]:
    """Return ``NAME=value`` of the variables under ``PREFIXES``, sorted; values that may be secret are left out."""
    kept = sorted((name, value) for name, value in environment.items() if name.startswith(PREFIXES))
    return tuple(f"{name}={LEFT_OUT if _SECRET_NAME.search(name) else flags(value)}" for name, value in kept)


def flags(text: str) -> str:
    """Return flags such as those of ``XLA_FLAGS`` without the values of those that may be secret."""
    text = os.fsencode(text).decode(errors="backslashreplace")  # a record is in UTF-8, a variable need not be
    return LEFT_OUT if _SECRET_TEXT.search(text) else re.sub(r"\S+", lambda word: _flag(word[0]), text)


def _flag(word: str) -> str:
    name, equals, value = word.partition("=")
    if equals and (_SECRET_NAME.search(name) or _SECRET_WORD.search(value)):
        return f"{name}={LEFT_OUT}"
    return LEFT_OUT if _SECRET_WORD.search(word) else word
