"""Webhooks: each event in a signed POST request, and the verifier for its receiver.

The names are loaded when they are first used: a receiver loads no client.
"""

from typing import TYPE_CHECKING

from pillarbox.lazy_names import lazy_names

if TYPE_CHECKING:
    from pillarbox.transports.webhook.headers import event_headers
    from pillarbox.transports.webhook.plugin import WebhookAddress
    from pillarbox.transports.webhook.signature import VerifiedWebhook, WebhookVerifier
    from pillarbox.transports.webhook.transport import WebhookTransport

__all__ = [
    "VerifiedWebhook",
    "WebhookAddress",
    "WebhookTransport",
    "WebhookVerifier",
    "event_headers",
]

if not TYPE_CHECKING:  # a type checker that saw it would believe every name
    __getattr__ = lazy_names(
        __name__,
        {
            "VerifiedWebhook": "signature",
            "WebhookAddress": "plugin",
            "WebhookTransport": "transport",
            "WebhookVerifier": "signature",
            "event_headers": "headers",
        },
    )
