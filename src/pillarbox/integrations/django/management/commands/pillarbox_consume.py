"""`manage.py pillarbox_consume`."""

from pillarbox.integrations.django.command import PassThrough


class Command(PassThrough):
    """`pillarbox consume` with the settings of Django."""

    help = "Run one of your consumers until SIGTERM or SIGINT."
    command = ("consume",)
