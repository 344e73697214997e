"""NATS JetStream: batches with publish acknowledgements, streams from configuration, and streams as sources of events.

The names are loaded when they are first used: addresses and streams are values, and need no driver.
"""

from typing import TYPE_CHECKING

from pillarbox.lazy_names import lazy_names

if TYPE_CHECKING:
    from pillarbox.transports.nats.dead_letters import NatsDeadLetters
    from pillarbox.transports.nats.plugin import NatsAddress
    from pillarbox.transports.nats.source import NatsSource
    from pillarbox.transports.nats.topology import Stream
    from pillarbox.transports.nats.transport import NatsTransport

__all__ = ["NatsAddress", "NatsDeadLetters", "NatsSource", "NatsTransport", "Stream"]

if not TYPE_CHECKING:  # a type checker that saw it would believe every name
    __getattr__ = lazy_names(
        __name__,
        {
            "NatsAddress": "plugin",
            "NatsDeadLetters": "dead_letters",
            "NatsSource": "source",
            "NatsTransport": "transport",
            "Stream": "topology",
        },
    )
