"""`manage.py pillarbox_relay`."""

from pillarbox.integrations.django.command import PassThrough


class Command(PassThrough):
    """`pillarbox relay` with the settings of Django."""

    help = "Run a relay, which sends events to their destinations."
    command = ("relay",)
