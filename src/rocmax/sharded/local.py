"""Shards in this process."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rocmax.sharded.shard import Recipe, Shard


class LocalShards:
    """Executor for shards in this process.

    Parameters
    ----------
    shards : sequence of Shard
        The shards.
    """

    def __init__(self, shards: Sequence[Shard]) -> None:
        self._shards = list(shards)

    def run(self, recipes: Sequence[Recipe], drop: Sequence[int], method: str, *args: Any) -> list[Any]:
        """Return the answer of each shard."""
        return [shard.answer(recipes, drop, method, *args) for shard in self._shards]
