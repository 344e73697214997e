"""`manage.py pillarbox_doctor`."""

from pillarbox.integrations.django.command import PassThrough


class Command(PassThrough):
    """`pillarbox doctor` with the settings of Django."""

    help = "Check settings, store, transports, guarantees and symptoms."
    command = ("doctor",)
