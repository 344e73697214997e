"""The worker, which writes one invoice per order: `celery --app billing worker --queues billing`."""

import os
from typing import Any

from celery import Celery
from shop import engine, invoices
from sqlalchemy import Connection

from pillarbox.integrations.celery import InboxTask

app = Celery("billing", broker=os.environ["PILLARBOX_TRANSPORT"].replace("celery", "amqp", 1))


class BillingTask(InboxTask):
    """Opens a transaction for each task, and skips duplicates."""

    transaction = engine
    autoretry_for = (Exception,)
    retry_backoff = True
    max_retries = None  # until it succeeds


@app.task(base=BillingTask, name="shop.bill")
def bill(connection: Connection, order: dict[str, Any]) -> None:
    connection.execute(invoices.insert().values(order_id=order["id"], total=order["total"]))
