"""A work queue with its dead-letter queue on a broker, and commands on them."""

from __future__ import annotations

import json
import uuid
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pika

from pillarbox.transports.rabbitmq import Queue
from tests.integration.cli.running import pillarbox
from tests.integration.consume.broker import declared, publish, ready, remove_queues
from tests.integration.consume.strange import Strange, publish_strange
from tests.integration.rabbitmq.consumer import channel, take_all
from tests.servers.waiting import wait_until


class WorkQueue:
    """`work` and `work.dlq` on a broker, configured in the settings file of `folder`."""

    def __init__(self, url: str, folder: Path) -> None:
        self.url = url
        self.folder = folder
        self.work = f"test-{uuid.uuid4().hex[:12]}"
        self.dead = f"{self.work}.dlq"
        (folder / "pillarbox.toml").write_text(f"[transports.rabbit]\nqueues = [{{ name = '{self.work}' }}]\n")
        publish(url, self.work)
        publish(url, self.dead)

    def dead_letter(self, *event_ids: str, **properties: Any) -> None:
        """Add dead letters like a consumer, with other properties on request."""
        notes = {"pillarbox-attempts": 7, "pillarbox-reason": "ValueError: no address", "pillarbox-queue": self.work}
        publish(self.url, self.dead, *event_ids, **({"headers": notes} | properties))

    def dead_letter_strange(self, *messages: Strange) -> None:
        """Add dead letters with unusual properties."""
        with channel(self.url) as broker:
            broker.confirm_delivery()
            publish_strange(broker, self.dead, messages)
        self.wait_for(self.dead, len(messages))

    def dead_letter_many(self, count: int) -> list[str]:
        """Add many dead letters; returns their ids."""
        ids = [f"e{n}" for n in range(count)]
        with channel(self.url) as broker:
            declared(broker, Queue(name=self.dead))
            for event_id in ids:
                notes = pika.BasicProperties(
                    message_id=event_id, delivery_mode=2, headers={"pillarbox-queue": self.work}
                )
                broker.basic_publish("", self.dead, b"{}", notes)
            # Before the channel closes: the queue could lose unconfirmed messages.
            self.wait_for(self.dead, count)
        return ids

    def run(self, *arguments: str, **variables: str) -> CompletedProcess[str]:
        """Run a command in the folder of the settings."""
        given = {
            "PILLARBOX_STORE": "sqlite:///pillarbox.db",
            "PILLARBOX_TRANSPORTS__RABBIT__URL": self.url,
            **variables,
        }
        return pillarbox(*arguments, cwd=self.folder, **given)

    def json_output(self, *arguments: str, code: int = 0) -> dict[str, Any]:
        """The JSON output of `dead broker`."""
        done = self.run("dead", "broker", *arguments, "--json")
        assert done.returncode == code, done.stderr
        answer: dict[str, Any] = json.loads(done.stdout)
        return answer

    def wait_for(self, queue: str, count: int) -> None:
        """Wait until the queue has that many ready messages."""
        wait_until(lambda: ready(self.url, queue) == count, bound=90, what=f"{count} in {queue}")

    def take(self, queue: str) -> list[str | None]:
        """Remove all messages from a queue; returns their ids."""
        return [taken.properties.message_id for taken in take_all(self.url, queue)]

    def remove(self) -> None:
        remove_queues(self.url, self.work)
