"""The channels of a user: preferences before defaults, and the event type before `*`."""

import pytest

from apps.notifications.domain import Channel
from apps.notifications.orchestration.preferences import Default, Preference, channels_for

EMAIL, PUSH, SMS, IN_APP = Channel.EMAIL, Channel.PUSH, Channel.SMS, Channel.IN_APP
DEFAULTS = [Default("*", EMAIL), Default("*", IN_APP), Default("ORDER_CREATED", SMS)]


def test_a_user_without_preferences_gets_the_defaults() -> None:
    assert channels_for("USER_REGISTERED", defaults=DEFAULTS) == [EMAIL, IN_APP]


def test_defaults_of_a_type_replace_those_of_every_event() -> None:
    assert channels_for("ORDER_CREATED", defaults=DEFAULTS) == [SMS]


def test_without_defaults_there_are_no_channels() -> None:
    assert channels_for("ORDER_CREATED", defaults=[]) == []


@pytest.mark.parametrize(
    ("preferences", "channels"),
    [
        ([Preference("*", EMAIL, False)], [IN_APP]),
        ([Preference("*", PUSH, True)], [EMAIL, PUSH, IN_APP]),
        ([Preference("E", EMAIL, False)], [IN_APP]),
        ([Preference("OTHER", EMAIL, False)], [EMAIL, IN_APP]),
        ([Preference("*", EMAIL, False), Preference("E", EMAIL, True)], [EMAIL, IN_APP]),
        ([Preference("E", EMAIL, False), Preference("*", EMAIL, True)], [IN_APP]),
        ([Preference("*", PUSH, True), Preference("E", PUSH, False)], [EMAIL, IN_APP]),
        ([Preference("*", channel, False) for channel in Channel], []),
        ([Preference("E", channel, True) for channel in Channel], list(Channel)),
    ],
)
def test_event_type_preferences_override_general_ones_and_defaults(
    preferences: list[Preference], channels: list[Channel]
) -> None:
    assert channels_for("E", defaults=DEFAULTS, preferences=preferences) == channels
