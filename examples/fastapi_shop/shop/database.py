"""The engine and the sessions, which record collected events when they commit."""

import os
from collections.abc import AsyncIterator

from sqlalchemy.ext.asyncio import AsyncSession, async_sessionmaker, create_async_engine

from pillarbox import Outbox
from pillarbox.integrations.sqlalchemy import record_collected

engine = create_async_engine(os.environ["DATABASE_URL"])
sessions = async_sessionmaker(engine, expire_on_commit=False)
record_collected(sessions, Outbox.from_settings())


async def transaction() -> AsyncIterator[AsyncSession]:
    """One transaction per request: FastAPI commits it before the response, or rolls it back."""
    async with sessions.begin() as session:
        yield session
