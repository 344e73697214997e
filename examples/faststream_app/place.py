"""Places an order: `python place.py 42 1999`. The event is recorded in a transaction of the caller."""

import asyncio
import os
import sys

from sqlalchemy.ext.asyncio import create_async_engine

from pillarbox.integrations.faststream import OutboxPublisher

orders = OutboxPublisher("order.placed", aggregate_type="order")


async def place(number: int, total: int) -> str:
    engine = create_async_engine(os.environ["PILLARBOX_STORE"].replace("postgresql://", "postgresql+asyncpg://"))
    try:
        async with engine.begin() as connection:
            # Write the order here: it is committed together with its event, or neither is.
            return await orders.publish({"id": number, "total": total}, connection=connection, aggregate_id=str(number))
    finally:
        await engine.dispose()


if __name__ == "__main__":
    print(asyncio.run(place(int(sys.argv[1]), int(sys.argv[2]))))
