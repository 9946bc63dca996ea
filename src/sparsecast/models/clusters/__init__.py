"""Models of distributed products: from speeds of a cluster and a Distribution to forecasts; nothing runs."""

from __future__ import annotations

from sparsecast.models.clusters.cluster_model import ClusterModel
from sparsecast.system.registry import Registry

#: Every model of distributed products, by name.
CLUSTER_MODELS: Registry[type[ClusterModel]] = Registry(
    "cluster model",
    "sparsecast.models.clusters",
    helpers=("cluster_model", "local_work", "network"),
    separator="-",
)

#: The model that forecasts where none is named.
DEFAULT_CLUSTER_MODEL = "sparsecast"
