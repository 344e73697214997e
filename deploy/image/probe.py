"""Exit with 0 if the process in this container is alive: the image's health check.

The first argument is the URL to request; without one, the relay's or the consumer's, or the console's.
"""

import sys
import urllib.request

URLS = ("http://127.0.0.1:9464/livez", "http://127.0.0.1:8980/livez")


def main(urls: tuple[str, ...]) -> int:
    failures: list[str] = []
    for url in urls:
        try:
            with urllib.request.urlopen(url, timeout=3):  # noqa: S310 - a URL of the image or of its operator
                return 0
        except OSError as error:
            failures.append(f"{url}: {error}")
    print("; ".join(failures), file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main(tuple(sys.argv[1:]) or URLS))
