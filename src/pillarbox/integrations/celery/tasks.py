"""The inbox for tasks: a base class whose tasks handle each event once.

The id of a task that a relay sent is the event id. The task admits it in the transaction of its own writes, and Celery
acknowledges the message after the commit: a worker that is killed in between gets the task again, and its effect
happens once.
"""

from __future__ import annotations

import logging
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, ClassVar

from pillarbox.core.errors import ConfigurationError
from pillarbox.inbox.inbox import Inbox
from pillarbox.inbox.transactions import Transactions, is_awaited, opened, opener

try:
    from celery import Task
except ImportError as missing:  # pragma: no cover - shown by the test of the bare wheel
    raise ImportError('tasks need Celery: pip install "pillarbox[celery]"') from missing

if TYPE_CHECKING:
    _Task = Task[Any, Any]
else:
    _Task = Task  # generic for type checkers only

_log = logging.getLogger("pillarbox.celery")


class InboxTask(_Task):
    """A task whose function takes the open transaction and the arguments, once per task id.

    Subclass it and set `transaction`; use the subclass as `base` of tasks:

        class BillingTask(InboxTask):
            transaction = engine

        @app.task(base=BillingTask, name="order.placed")
        def bill(connection, order): ...

    A duplicate returns None without a call. A function that raises, and `self.retry()`, roll back.
    """

    abstract = True
    acks_late = True
    reject_on_worker_lost = True
    # The caller of a task does not pass the transaction, which the function's signature has.
    typing = False

    transaction: ClassVar[Transactions | None] = None
    """What opens a transaction: a SQLAlchemy engine or sessionmaker, a psycopg pool's `connection`, or a function that
    returns a context manager. It must commit when the block ends without an exception."""
    inbox: ClassVar[Inbox] = Inbox()
    """Set it for tables with another prefix or schema."""
    consumer: ClassVar[str] = ""
    """The name under which the inbox keeps records; '': the name of the task. Keep it stable."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Open the transaction, admit the task id, call the function, commit. Raises ConfigurationError, and what
        `Inbox.admit` and the function raise."""
        # The class attribute: an engine has no `__get__`, but a function would be bound to the task.
        transaction = _class_attribute(type(self), "transaction")
        if transaction is None:
            raise ConfigurationError(
                f"task {self.name}: set `transaction` of {type(self).__name__}, as in its docstring"
            )
        if self.request.id is None:
            raise ConfigurationError(
                f"task {self.name} was called directly, so it has no id; send it, or call apply(task_id=…) in a test"
            )
        block = opened(opener(transaction))
        if is_awaited(block) or not isinstance(block, AbstractContextManager):
            raise ConfigurationError(
                f"task {self.name}: its transaction is async, and a Celery task is not; use a sync engine or pool"
            )
        with block as connection:
            if not self.inbox.admit(connection, self.consumer or self.name, self.request.id):
                _log.warning("skipped duplicate: task=%s event_id=%s", self.name, self.request.id)
                return None
            return self.run(connection, *args, **kwargs)


def _class_attribute(kind: type, name: str) -> Any:
    """A class attribute, without binding a function to an instance."""
    found = next((vars(base)[name] for base in kind.__mro__ if name in vars(base)), None)
    return found.__func__ if isinstance(found, staticmethod) else found
