"""Which channels reach a user: their own choices first, those for the very event before those for all."""

import pytest

from apps.notifications.orchestration.preferences import Default, Preference, channels_for
from apps.notifications.words import Channel

EMAIL, PUSH, SMS, IN_APP = Channel.EMAIL, Channel.PUSH, Channel.SMS, Channel.IN_APP
DEFAULTS = [Default("*", EMAIL), Default("*", IN_APP), Default("ORDER_CREATED", SMS)]


def test_a_user_without_preferences_gets_what_the_audience_gets() -> None:
    assert channels_for("USER_REGISTERED", defaults=DEFAULTS) == [EMAIL, IN_APP]


def test_defaults_of_a_type_replace_those_of_every_event() -> None:
    assert channels_for("ORDER_CREATED", defaults=DEFAULTS) == [SMS]


def test_without_defaults_nobody_is_told() -> None:
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
def test_a_choice_for_the_event_wins_over_one_for_all_and_that_over_the_default(
    preferences: list[Preference], channels: list[Channel]
) -> None:
    assert channels_for("E", defaults=DEFAULTS, preferences=preferences) == channels
