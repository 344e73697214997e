"""The tables of the shop. An order collects the events of its changes."""

from __future__ import annotations

from sqlalchemy import String
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

from pillarbox import Event
from pillarbox.integrations.sqlalchemy import CollectsEvents


class Base(DeclarativeBase):
    pass


class Order(CollectsEvents, Base):
    __tablename__ = "orders"

    id: Mapped[int] = mapped_column(primary_key=True)
    customer: Mapped[str] = mapped_column(String(100))
    state: Mapped[str] = mapped_column(String(20), default="placed")

    @classmethod
    def place(cls, customer: str) -> Order:
        order = cls(customer=customer)
        # A function, because the database generates the id.
        order.collect(lambda: order._event("order.placed"))
        return order

    def ship(self) -> None:
        self.state = "shipped"
        self.collect(self._event("order.shipped"))

    def _event(self, event_type: str) -> Event:
        payload = {"id": self.id, "customer": self.customer}
        return Event(event_type, payload, aggregate_type="ORDER", aggregate_id=str(self.id))
