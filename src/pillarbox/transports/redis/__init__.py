"""Redis Streams: pipelined XADD with one reply per message, and streams as sources of events.

The names are loaded when they are first used: an address is a value, and needs no driver.
"""

from typing import TYPE_CHECKING

from pillarbox.lazy_names import lazy_names

if TYPE_CHECKING:
    from pillarbox.transports.redis.dead_letters import RedisDeadLetters
    from pillarbox.transports.redis.plugin import RedisAddress
    from pillarbox.transports.redis.source import RedisSource
    from pillarbox.transports.redis.transport import RedisTransport

__all__ = ["RedisAddress", "RedisDeadLetters", "RedisSource", "RedisTransport"]

if not TYPE_CHECKING:  # a type checker that saw it would believe every name
    __getattr__ = lazy_names(
        __name__,
        {
            "RedisAddress": "plugin",
            "RedisDeadLetters": "dead_letters",
            "RedisSource": "source",
            "RedisTransport": "transport",
        },
    )
