"""What a type checker accepts as a connection, and what it refuses. Nothing here is run.

A line that must be an error is marked as one: mypy fails for a mark that is not needed.
"""

import sqlite3

import asyncmy
import asyncpg
import psycopg
import psycopg2
import pymysql
import pymysql.cursors
from psycopg2.pool import ThreadedConnectionPool
from sqlalchemy import Connection, Engine
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, AsyncSession, async_scoped_session, async_sessionmaker
from sqlalchemy.orm import Session, scoped_session, sessionmaker

from pillarbox import Event, Inbox, Outbox
from pillarbox.stores.memory import MemoryStore

outbox, inbox, event = Outbox(), Inbox(), Event("order.placed", {})


def blocking(
    session: Session,
    scoped: scoped_session[Session],
    connection: Connection,
    own: psycopg.Connection,
    old: "psycopg2.extensions.connection",
    engine: Engine,
    factory: sessionmaker[Session],
    pool: ThreadedConnectionPool,
    lite: sqlite3.Connection,
    maria: "pymysql.Connection[pymysql.cursors.Cursor]",
    store: MemoryStore,
) -> None:
    outbox.record(session, event)
    outbox.record(scoped, event)
    outbox.record(connection, event)
    outbox.record(own, event)
    outbox.record(old, event)
    outbox.record(lite, event)
    outbox.record(maria, event)
    outbox.record(engine, event)
    outbox.record(factory, event)
    outbox.record(pool, event)
    with store.transaction() as transaction:
        outbox.record(transaction, event)
        inbox.admit(transaction, "billing", event)
    inbox.admit(session, "billing", "evt-1")
    inbox.admit(connection, "billing", event)
    inbox.admit(own, "billing", event)
    inbox.admit(old, "billing", event)
    inbox.admit(lite, "billing", event)
    inbox.admit(maria, "billing", event)


async def awaited(
    session: AsyncSession,
    scoped: async_scoped_session[AsyncSession],
    connection: AsyncConnection,
    own: psycopg.AsyncConnection,
    other: "asyncpg.Connection[asyncpg.Record]",
    maria: asyncmy.Connection,
    engine: AsyncEngine,
    factory: async_sessionmaker[AsyncSession],
    pool: "asyncpg.Pool[asyncpg.Record]",
) -> None:
    await outbox.arecord(session, event)
    await outbox.arecord(scoped, event)
    await outbox.arecord(connection, event)
    await outbox.arecord(own, event)
    await outbox.arecord(other, event)
    await outbox.arecord(maria, event)
    await outbox.arecord(engine, event)
    await outbox.arecord(factory, event)
    await outbox.arecord(pool, event)
    async with pool.acquire() as lent, lent.transaction():
        await outbox.arecord(lent, event)
        await inbox.aadmit(lent, "billing", event)
    await inbox.aadmit(session, "billing", event)
    await inbox.aadmit(connection, "billing", event)
    await inbox.aadmit(own, "billing", event)
    await inbox.aadmit(other, "billing", event)


async def refused(
    session: AsyncSession,
    own: psycopg.AsyncConnection,
    lite: sqlite3.Connection,
    engine: Engine,
    pool: "asyncpg.Pool[asyncpg.Record]",
) -> None:
    outbox.record(session, event)  # type: ignore[arg-type]
    outbox.record(own, event)  # type: ignore[arg-type]
    outbox.record("sqlite:///shop.db", event)  # type: ignore[arg-type]
    outbox.record(None, event)  # type: ignore[arg-type]
    outbox.record(lite.cursor(), event)  # type: ignore[arg-type]
    outbox.record(lite, {"type": "order.placed"})  # type: ignore[arg-type]
    await outbox.arecord(lite, event)  # type: ignore[arg-type]
    await outbox.arecord(engine, event)  # type: ignore[arg-type]
    inbox.admit(engine, "billing", event)  # type: ignore[arg-type]
    await inbox.aadmit(pool, "billing", event)  # type: ignore[arg-type]
    inbox.admit(lite, "billing", 42)  # type: ignore[arg-type]
