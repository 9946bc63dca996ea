"""Loops whose speed is that of arithmetic, or of memory."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from sparsecast.system.jit import njit


@njit(nogil=True, cache=True, fastmath={"contract"})
def chains(count: int, factor: float) -> float:
    """Do `count` multiplications and additions, in eight chains that do not wait for each other."""
    a = b = c = d = e = f = g = h = 1.0
    for _ in range(count // 8):
        a = a * factor + 1.0
        b = b * factor + 2.0
        c = c * factor + 3.0
        d = d * factor + 4.0
        e = e * factor + 5.0
        f = f * factor + 6.0
        g = g * factor + 7.0
        h = h * factor + 8.0
    return a + b + c + d + e + f + g + h


@njit(nogil=True, cache=True, fastmath={"contract"})
def triad(a: NDArray[Any], b: NDArray[Any], c: NDArray[Any], factor: float) -> None:
    """Set a to b + factor c (McCalpin's STREAM)."""
    for i in range(len(a)):
        a[i] = b[i] + factor * c[i]
