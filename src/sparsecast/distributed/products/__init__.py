"""Distributed products: one file for each algorithm, found by its file's name."""

from __future__ import annotations

from sparsecast.distributed.distributed_product import DistributedProduct
from sparsecast.system.registry import Registry

#: Every algorithm that runs here, by name.
PRODUCTS: Registry[type[DistributedProduct]] = Registry(
    "algorithm", "sparsecast.distributed.products", separator="-"
)
