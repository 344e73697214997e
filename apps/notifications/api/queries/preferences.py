"""Reads and writes the preferences that the listeners use."""

from __future__ import annotations

from collections import defaultdict

from sqlalchemy import Connection, Engine, Select, delete, insert, select, update

from apps.notifications.api.models import Preferences, QuietHours
from apps.notifications.domain import Channel
from apps.notifications.tables import channel_preference, quiet_hours, recipient


class Stale(Exception):
    """The preferences were changed concurrently."""


class PreferenceQueries:
    """Reads and replaces preferences."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def find(self, user_id: int) -> Preferences | None:
        """None if there is no such user."""
        with self._engine.begin() as connection:
            return _found(connection, user_id)

    def replace(self, user_id: int, wanted: Preferences, *, instead_of: str | None) -> bool:
        """Replace all preferences; False if there is no such user.

        instead_of: the expected current version. Raises Stale if it differs.
        """
        with self._engine.begin() as connection:
            connection.execute(_row_of(user_id).with_for_update())  # serializes concurrent writers
            present = _found(connection, user_id)
            if present is None:
                return False
            if instead_of is not None and instead_of != present.version:
                raise Stale
            _write(connection, user_id, wanted)
        return True


def _row_of(user_id: int) -> Select[str]:
    return select(recipient.c.time_zone).where(recipient.c.user_id == user_id)


def _found(connection: Connection, user_id: int) -> Preferences | None:
    time_zone = connection.scalar(_row_of(user_id))
    if time_zone is None:
        return None
    hours = select(quiet_hours.c.starts, quiet_hours.c.ends).where(
        quiet_hours.c.user_id == user_id,
        quiet_hours.c.starts != quiet_hours.c.ends,  # equal means never
    )
    quiet = connection.execute(hours).one_or_none()
    chosen = select(channel_preference).where(channel_preference.c.user_id == user_id)
    channels: defaultdict[str, dict[Channel, bool]] = defaultdict(dict)
    for row in connection.execute(chosen.order_by(channel_preference.c.event_type, channel_preference.c.channel)):
        channels[row.event_type][Channel(row.channel)] = row.enabled
    return Preferences(
        time_zone=time_zone,
        quiet_hours=None if quiet is None else QuietHours(starts=quiet.starts, ends=quiet.ends),
        channels=channels,
    )


def _write(connection: Connection, user_id: int, wanted: Preferences) -> None:
    connection.execute(update(recipient).where(recipient.c.user_id == user_id).values(time_zone=wanted.time_zone))
    for table in (quiet_hours, channel_preference):
        connection.execute(delete(table).where(table.c.user_id == user_id))
    if (quiet := wanted.quiet_hours) is not None:
        connection.execute(insert(quiet_hours).values(user_id=user_id, starts=quiet.starts, ends=quiet.ends))
    rows = [
        {"user_id": user_id, "event_type": event_type, "channel": channel, "enabled": enabled}
        for event_type, channels in wanted.channels.items()
        for channel, enabled in channels.items()
    ]
    if rows:
        connection.execute(insert(channel_preference), rows)
