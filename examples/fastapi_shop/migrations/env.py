"""Alembic on the engine of the application. The tables of the outbox are migrated by `op.pillarbox_upgrade`."""

import asyncio

from alembic import context
from shop.database import engine
from shop.models import Base
from sqlalchemy import Connection

from pillarbox.integrations.alembic import include_object


def migrate(connection: Connection) -> None:
    # Autogenerate would drop the tables of the outbox, which no model describes.
    context.configure(connection=connection, target_metadata=Base.metadata, include_object=include_object)
    with context.begin_transaction():
        context.run_migrations()


async def main() -> None:
    async with engine.connect() as connection:
        await connection.run_sync(migrate)
        await connection.commit()
    await engine.dispose()


asyncio.run(main())
