"""A work queue whose dead letters lie on a broker, and the commands that are typed at it."""

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


class Graveyard:
    """`work` and `work.dlq` on a broker, known to the settings file in `folder`."""

    def __init__(self, url: str, folder: Path) -> None:
        self.url = url
        self.folder = folder
        self.work = f"test-{uuid.uuid4().hex[:12]}"
        self.dead = f"{self.work}.dlq"
        (folder / "pillarbox.toml").write_text(f"[transports.rabbit]\nqueues = [{{ name = '{self.work}' }}]\n")
        publish(url, self.work)
        publish(url, self.dead)

    def bury(self, *event_ids: str, **properties: Any) -> None:
        """Letters as a consumer of ours leaves them, unless told otherwise."""
        notes = {"pillarbox-attempts": 7, "pillarbox-reason": "ValueError: no address", "pillarbox-queue": self.work}
        publish(self.url, self.dead, *event_ids, **({"headers": notes} | properties))

    def bury_strange(self, *letters: Strange) -> None:
        """Letters as nobody would write them."""
        with channel(self.url) as broker:
            broker.confirm_delivery()
            publish_strange(broker, self.dead, letters)
        self.wait_for(self.dead, len(letters))

    def bury_many(self, count: int) -> list[str]:
        """So many at once, and their ids."""
        ids = [f"e{n}" for n in range(count)]
        with channel(self.url) as broker:
            declared(broker, Queue(name=self.dead))
            for event_id in ids:
                notes = pika.BasicProperties(
                    message_id=event_id, delivery_mode=2, headers={"pillarbox-queue": self.work}
                )
                broker.basic_publish("", self.dead, b"{}", notes)
            # Before the channel closes: the queue might lose unconfirmed letters with it.
            self.wait_for(self.dead, count)
        return ids

    def run(self, *arguments: str, **variables: str) -> CompletedProcess[str]:
        """A command in the folder of the settings."""
        told = {"PILLARBOX_TRANSPORTS__RABBIT__URL": self.url} | variables
        return pillarbox(*arguments, cwd=self.folder, **told)

    def told(self, *arguments: str, code: int = 0) -> dict[str, Any]:
        """What `dead broker` answers to a script."""
        done = self.run("dead", "broker", *arguments, "--json")
        assert done.returncode == code, done.stderr
        answer: dict[str, Any] = json.loads(done.stdout)
        return answer

    def wait_for(self, queue: str, count: int) -> None:
        """Until so many lie in a queue that nobody has in hand."""
        wait_until(lambda: ready(self.url, queue) == count, bound=90, what=f"{count} in {queue}")

    def take(self, queue: str) -> list[str | None]:
        """The ids of everything in a queue, which is empty afterwards."""
        return [taken.properties.message_id for taken in take_all(self.url, queue)]

    def remove(self) -> None:
        remove_queues(self.url, self.work)
