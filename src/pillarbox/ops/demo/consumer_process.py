"""`python -m pillarbox.ops.demo.consumer_process`: the far side of RabbitMQ, which writes the ledger.

It asks for one message after the other, so that "there is none" is the broker's answer and not a guess.
"""

from __future__ import annotations

import logging
import threading

import pika
from pika.adapters.blocking_connection import BlockingChannel

from pillarbox.ops.demo.leash import told_scene, when_let_go
from pillarbox.ops.demo.ledger import Entry, Ledger, Note
from pillarbox.ops.demo.sabotage import cheating
from pillarbox.ops.demo.scene import CONSUMER

PAUSE = 0.02


def consume(channel: BlockingChannel, queue: str, note: Note) -> bool:
    """Take one message, if there is one."""
    method, properties, _ = channel.basic_get(queue)
    if method is None or method.delivery_tag is None or properties is None:
        return False
    headers = properties.headers or {}
    note(Entry(CONSUMER, "handled", str(headers["aggregateId"]), str(properties.message_id)))
    channel.basic_ack(method.delivery_tag)
    return True


def main() -> None:
    logging.getLogger("pika").setLevel(logging.CRITICAL)
    scene = told_scene()
    let_go = threading.Event()
    when_let_go(let_go.set)
    ledger = Ledger(scene.ledger)
    note = cheating(scene.sabotage, CONSUMER, ledger.note)
    with pika.BlockingConnection(pika.URLParameters(scene.transport)) as connection:
        channel = connection.channel()
        channel.queue_declare(scene.name, durable=True, arguments={"x-queue-type": "quorum"})
        while True:
            last = let_go.is_set()  # asked first: once let go the relay is gone, and an empty queue stays empty
            if consume(channel, scene.name, note):
                continue
            if last:
                break
            connection.sleep(PAUSE)
        channel.queue_delete(scene.name)
    ledger.close()


if __name__ == "__main__":
    main()
