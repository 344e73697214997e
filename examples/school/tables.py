"""What the tables of all modules share."""

from sqlalchemy.orm import DeclarativeBase


class Base(DeclarativeBase):
    pass
