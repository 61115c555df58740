"""Scaling laws in print that know nothing of programs: what the physical laws are compared with.

Amdahl's, Gustafson's and the Universal Scalability Law say how the *throughput* X grows with the number of devices,
Ernest and the sign-free three terms give the columns of a linear model of the time. The constants of the Universal
Scalability Law are called ``contention`` (sigma) and ``coherency`` (kappa) here.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from .ring import check_num_devices


def amdahl_throughput(num_devices: ArrayLike, *, rate: float, serial: float) -> np.ndarray:
    r"""Throughput under Amdahl's law [1]_, shape (...), in the unit of ``rate``: lambda n / (1 + s (n - 1)).

    Parameters
    ----------
    num_devices : array_like, shape (...), n >= 1
    rate : lambda, throughput of one device
    serial : s, share of one device's time that no device can share

    References
    ----------
    .. [1] G. M. Amdahl, AFIPS Spring Joint Computer Conference, 483-485, 1967, doi:10.1145/1465482.1465560.
    """
    n = check_num_devices(num_devices)
    return rate * n / (1 + serial * (n - 1))


def gustafson_throughput(num_devices: ArrayLike, *, rate: float, serial: float) -> np.ndarray:
    r"""Throughput under Gustafson's law [1]_, shape (...), in the unit of ``rate``: lambda (s + (1 - s) n).

    Parameters
    ----------
    num_devices : array_like, shape (...), n >= 1
    rate : lambda, throughput of one device
    serial : s, share of the time on n devices that is spent serially

    References
    ----------
    .. [1] J. L. Gustafson, Commun. ACM 31(5), 532-533, 1988, doi:10.1145/42411.42415.
    """
    n = check_num_devices(num_devices)
    return rate * (serial + (1 - serial) * n)


def scalability_throughput(num_devices: ArrayLike, *, rate: float, contention: float, coherency: float) -> np.ndarray:
    r"""Throughput under the Universal Scalability Law [1]_, shape (...), in the unit of ``rate``.

    Parameters
    ----------
    num_devices : array_like, shape (...), n >= 1
    rate : lambda, throughput of one device (it need not have been measured)
    contention, coherency : sigma and kappa, not negative

    Notes
    -----
    .. math:: X(n) = \lambda n / (1 + \sigma (n - 1) + \kappa n (n - 1))

    References
    ----------
    .. [1] N. J. Gunther, Guerrilla Capacity Planning, Springer, 2007, doi:10.1007/978-3-540-31010-5.
    """
    n = check_num_devices(num_devices)
    return rate * n / (1 + contention * (n - 1) + coherency * n * (n - 1))


def scalability_optimum(*, contention: float, coherency: float) -> float:
    """Count of the largest throughput under the Universal Scalability Law: sqrt((1 - sigma)/kappa), at least 1.

    Infinite where ``coherency`` is 0 and ``contention`` below 1: the throughput grows for ever.
    """
    if contention >= 1:
        return 1.0
    return max(1.0, math.sqrt((1 - contention) / coherency)) if coherency > 0 else math.inf


def ernest_columns(num_devices: ArrayLike, size: ArrayLike) -> np.ndarray:
    """Columns [1, S / n, log n, n] of Ernest's model of the time [1]_, shape (..., 4).

    Parameters
    ----------
    num_devices : array_like, shape (...), n >= 1
    size : array_like, shape (...), global size S

    References
    ----------
    .. [1] S. Venkataraman et al., Ernest: efficient performance prediction for large-scale advanced analytics,
       NSDI 2016, 363-378.
    """
    n = check_num_devices(num_devices).astype(float)
    return np.stack([np.ones_like(n), np.asarray(size, dtype=float) / n, np.log(n), n], axis=-1)


def three_term_columns(num_devices: ArrayLike) -> np.ndarray:
    """Columns [1, 1/n, n] whose coefficients may have any sign, shape (..., 3)."""
    n = check_num_devices(num_devices).astype(float)
    return np.stack([np.ones_like(n), 1 / n, n], axis=-1)
