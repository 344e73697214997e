"""`manage.py pillarbox_dead`."""

from pillarbox.integrations.django.command import PassThrough


class Command(PassThrough):
    """`pillarbox dead` with the settings of Django."""

    help = "List, group, show, export, edit, retry and discard dead letters."
    command = ("dead",)
