"""Celery: events become tasks, and tasks handle each event once.

The transport needs no Celery, only the extra `rabbitmq`: a relay runs without the code of the tasks. The names are
loaded when they are first used.
"""

from typing import TYPE_CHECKING

from pillarbox.lazy_names import lazy_names

if TYPE_CHECKING:
    from pillarbox.integrations.celery.tasks import InboxTask
    from pillarbox.integrations.celery.transport import CeleryAddress, CeleryTransport

__all__ = ["CeleryAddress", "CeleryTransport", "InboxTask"]

if not TYPE_CHECKING:  # a type checker that saw it would believe every name
    __getattr__ = lazy_names(
        __name__, {"CeleryAddress": "transport", "CeleryTransport": "transport", "InboxTask": "tasks"}
    )
