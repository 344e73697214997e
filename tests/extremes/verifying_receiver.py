"""A receiver of webhooks that verifies signatures: `python -m tests.extremes.verifying_receiver SECRET`.

It writes its URL, and the ids of the events that it accepts and refuses, into files in its working folder.
"""

import sys
from collections.abc import Mapping
from pathlib import Path

from pillarbox.core.errors import WebhookVerificationError
from pillarbox.transports.webhook import WebhookVerifier
from tests.extremes.receiving import WebhookReceiver

URL, ACCEPTED, REFUSED = Path("url.txt"), Path("accepted.txt"), Path("refused.txt")


def main(secret: str) -> None:
    verifier = WebhookVerifier(secret)

    def is_verified(headers: Mapping[str, str], body: bytes) -> bool:
        try:
            event_id = verifier.verify(headers, body).event_id
        except WebhookVerificationError as error:
            write(REFUSED, str(error))
            return False
        write(ACCEPTED, event_id)
        return True

    receiver = WebhookReceiver(is_verified)
    URL.with_suffix(".new").write_text(receiver.url())
    URL.with_suffix(".new").rename(URL)


def write(path: Path, line: str) -> None:
    with path.open("a") as file:
        file.write(f"{line}\n")


if __name__ == "__main__":
    main(sys.argv[1])
