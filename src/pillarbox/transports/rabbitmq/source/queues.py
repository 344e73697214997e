"""The queues around a work queue: one for each wait, one for suspects, one for dead letters.

A message waits in a queue in which every message waits equally long, so that none stands behind one that waits longer;
when its time is over, the broker itself brings it back to the work queue. Neither a consumer nor a plugin is needed
for that, and it goes on whoever is restarted. All of them are durable quorum queues, and the way back is
`at-least-once`: the broker forgets a message in the one queue when it is safe in the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pillarbox.admin.broker_dead_letters import dead_letter_queue
from pillarbox.core.clock import Duration, seconds
from pillarbox.core.errors import ConfigurationError
from pillarbox.transports.rabbitmq.topology import DeadLetter, Declaration, Exchange, Queue, Topology, work_queue

WAITS: tuple[Duration, ...] = ("1s", "5s", "30s", "3min", "15min", "1h")
_UNITS = ((3_600_000, "h"), (60_000, "min"), (1000, "s"), (1, "ms"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Queues:
    """Their names, and the waits in milliseconds, ascending."""

    work: Queue
    waits: tuple[int, ...]

    @classmethod
    def around(cls, work: str | Queue, waits: Sequence[Duration]) -> Queues:
        """Raises ConfigurationError for a wait that is none, and for names that grow too long."""
        queue = work_queue(work) if isinstance(work, str) else work
        found = sorted({round(seconds(wait, field="waits") * 1000) for wait in waits})
        if not found or found[0] < 1:
            raise ConfigurationError("waits: at least one, and none shorter than 1ms, or a failing message would spin")
        queues = cls(work=queue, waits=tuple(found))
        queues.beside()  # checks them
        return queues

    @property
    def suspects(self) -> str:
        return f"{self.work.name}.suspects"

    @property
    def dead(self) -> str:
        dead = self.work.dead_letter
        return dead_letter_queue(self.work.name) if dead is None else dead.queue

    def waiting(self, after: float) -> str:
        """The queue of the shortest wait that is long enough; of the longest, if none is."""
        fitting = next((wait for wait in self.waits if wait >= after * 1000), self.waits[-1])
        return self._waiting(fitting)

    def declarations(self, exchanges: Sequence[Exchange]) -> list[Declaration]:
        """All of it, the work queue first."""
        topology = Topology(exchanges=exchanges, queues=[self.work]).declarations()
        named = {item.name for item in topology if isinstance(item, Queue)}
        return [*topology, *(queue for queue in self.beside() if queue.name not in named)]

    def beside(self) -> list[Queue]:
        """Everything but the work queue."""
        return [Queue(name=self.dead), Queue(name=self.suspects), *(self._wait_queue(wait) for wait in self.waits)]

    def _wait_queue(self, wait: int) -> Queue:
        return Queue(
            name=self._waiting(wait),
            message_ttl=wait / 1000,
            dead_letter=DeadLetter(exchange="", queue=self.work.name),
            overflow="reject-publish",  # the broker's condition for the next line
            arguments={"x-dead-letter-strategy": "at-least-once"},
        )

    def _waiting(self, wait: int) -> str:
        size, unit = next((size, unit) for size, unit in _UNITS if wait % size == 0)
        return f"{self.work.name}.wait.{wait // size}{unit}"
