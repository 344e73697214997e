"""`manage.py pillarbox_status`."""

from pillarbox.integrations.django.command import PassThrough


class Command(PassThrough):
    """`pillarbox status` with the settings of Django."""

    help = "Show whether events flow and, if not, why."
    command = ("status",)
