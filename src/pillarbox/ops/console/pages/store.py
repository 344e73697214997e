"""The pages of the store and of the inbox."""

from __future__ import annotations

from starlette.responses import Response

from pillarbox.ops.console.fields import is_yes
from pillarbox.ops.console.request import ConsoleRequest
from pillarbox.ops.inbox import read_inbox


async def store(request: ConsoleRequest) -> Response:
    """Show tables and sizes and, on demand, the findings of the doctor."""
    status = await request.store.schema.status()
    taken = await request.store.diagnosis.table_sizes()
    doctor = request.context.doctor
    examined = await doctor.report() if doctor is not None and is_yes(request.query, "doctor") else None
    return await request.render(
        "store.html", status=status, taken=taken, examined=examined, has_doctor=doctor is not None
    )


async def inbox(request: ConsoleRequest) -> Response:
    """Show per-consumer inbox statistics."""
    return await request.render(
        "inbox.html", inbox=await read_inbox(request.store, retention=request.context.retention)
    )
