"""A resolver that answers as a test tells it to: a name server that changes its mind."""

import socket
from typing import Any


class Scripted:
    """The answers, in order; the last one again and again. Without any: no such host."""

    def __init__(self, answers: list[list[str]]) -> None:
        self._answers = answers
        self.asked: list[str] = []

    async def __call__(self, host: str, port: int) -> list[tuple[Any, ...]]:
        self.asked.append(host)
        if not self._answers:
            raise OSError(None, "no such host")
        addresses = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        return [_info(address, port) for address in addresses]


def _info(address: str, port: int) -> tuple[Any, ...]:
    if ":" in address:
        return (socket.AF_INET6, socket.SOCK_STREAM, 0, "", (address, port, 0, 0))
    return (socket.AF_INET, socket.SOCK_STREAM, 0, "", (address, port))
