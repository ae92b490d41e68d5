"""Types of levels and allocations for code that works with every kind of cluster and does not look inside."""

from __future__ import annotations

from typing import Any, TypeAlias

from hpcsimkit.cluster.base import Cluster

__all__ = ["Allocation", "AnyCluster", "Level"]

Level: TypeAlias = Any
"""Available capacity: an ``int`` with homogeneous nodes, an integer matrix with machines."""

Allocation: TypeAlias = Any
"""Resources that a job occupies; ``level - allocation`` and ``level + allocation`` are levels."""

AnyCluster: TypeAlias = Cluster[Any, Any]
"""A cluster of either kind."""
