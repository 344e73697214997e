"""The base class of the tables of all modules."""

from sqlalchemy.orm import DeclarativeBase


class Base(DeclarativeBase):
    pass
