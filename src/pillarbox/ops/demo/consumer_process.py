"""`python -m pillarbox.ops.demo.consumer_process`: consumes the queue in RabbitMQ and writes the ledger.

It gets one message at a time with `basic.get`, so that the broker itself reports when the queue is empty.
"""

from __future__ import annotations

import logging
import threading

import pika
from pika.adapters.blocking_connection import BlockingChannel

from pillarbox.ops.child_process import on_parent_exit, read_job
from pillarbox.ops.demo.environment import CONSUMER, DemoEnvironment
from pillarbox.ops.demo.fault_injection import with_fault
from pillarbox.ops.demo.ledger import Append, DemoLedgerEntry, LedgerWriter

PAUSE = 0.02


def consume(channel: BlockingChannel, queue: str, append: Append) -> bool:
    """Consume one message; return False if the queue is empty."""
    method, properties, _ = channel.basic_get(queue)
    if method is None or method.delivery_tag is None or properties is None:
        return False
    headers = properties.headers or {}
    append(DemoLedgerEntry(CONSUMER, "handled", str(headers["aggregateId"]), str(properties.message_id)))
    channel.basic_ack(method.delivery_tag)
    return True


def main() -> None:
    logging.getLogger("pika").setLevel(logging.CRITICAL)
    environment = DemoEnvironment.load(read_job())
    stopping = threading.Event()
    on_parent_exit(stopping.set)
    ledger = LedgerWriter(environment.ledger)
    append = with_fault(environment.inject, CONSUMER, ledger.append)
    with pika.BlockingConnection(pika.URLParameters(environment.transport)) as connection:
        channel = connection.channel()
        channel.queue_declare(environment.name, durable=True, arguments={"x-queue-type": "quorum"})
        while True:
            # Read before the queue: the relay has ended once this is set, so a queue that is empty now stays empty.
            last = stopping.is_set()
            if consume(channel, environment.name, append):
                continue
            if last:
                break
            connection.sleep(PAUSE)
        channel.queue_delete(environment.name)
    ledger.close()


if __name__ == "__main__":
    main()
