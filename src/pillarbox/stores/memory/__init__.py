"""Memory: everything in this process, for tests, simulation and first steps; it forgets with the process."""

from pillarbox.stores.memory.store import MemoryStore
from pillarbox.stores.memory.transaction import MemoryTransaction

__all__ = ["MemoryStore", "MemoryTransaction"]
