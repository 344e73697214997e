"""A shop with Flask-SQLAlchemy: `flask run`. DATABASE_URL names the database; by default it is a file of SQLite."""

import os
from pathlib import Path

from flask import Flask, abort
from flask_sqlalchemy import SQLAlchemy
from sqlalchemy import String
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

from pillarbox import Event, Outbox
from pillarbox.integrations.sqlalchemy import CollectsEvents, record_collected


class Base(DeclarativeBase):
    pass


db = SQLAlchemy(model_class=Base)
record_collected(db.session, Outbox.from_settings())  # once, however many applications are created


class Order(CollectsEvents, db.Model):
    id: Mapped[int] = mapped_column(primary_key=True)
    customer: Mapped[str] = mapped_column(String(100))


def create_app() -> Flask:
    app = Flask(__name__)
    default = f"sqlite:///{Path('pillarbox.db').absolute()}"  # the file that `pillarbox` uses by default
    app.config["SQLALCHEMY_DATABASE_URI"] = os.environ.get("DATABASE_URL", default)
    db.init_app(app)
    with app.app_context():
        db.create_all()

    @app.post("/orders/<customer>")
    def place(customer: str) -> tuple[dict[str, int], int]:
        order = Order()
        order.customer = customer
        db.session.add(order)
        order.collect(lambda: Event("order.placed", {"id": order.id}, key=f"order:{order.id}"))
        if customer == "mallory":
            abort(403)  # Flask-SQLAlchemy rolls back what was not committed
        db.session.commit()
        return {"id": order.id}, 201

    return app
