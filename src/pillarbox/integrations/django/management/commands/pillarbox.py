"""`manage.py pillarbox COMMAND …`."""

from pillarbox.integrations.django.command import PassThrough


class Command(PassThrough):
    """Any command of `pillarbox` with the settings of Django."""

    help = "Operate the outbox: `manage.py pillarbox --help` lists the commands."
