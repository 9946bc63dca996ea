"""Distributed products: one file for each algorithm, found by its file's name."""

from __future__ import annotations

from sparsecast.distributed.distributed_product import DistributedProduct
from sparsecast.system.registry import Registry

#: Every algorithm that runs here, by name.
PRODUCTS: Registry[type[DistributedProduct]] = Registry(
    "algorithm", "sparsecast.distributed.products", separator="-"
)


def default_algorithms() -> list[str]:
    """Return the algorithms that are measured and forecast where none is named."""
    return [name for name in PRODUCTS.names() if PRODUCTS.get(name).is_default]
