"""A resolver that answers as a test tells it to: a name server that changes its mind."""

import socket

from aiohttp.abc import AbstractResolver, ResolveResult


class Scripted(AbstractResolver):
    """The answers, in order; the last one again and again. Without any: no such host."""

    def __init__(self, answers: list[list[str]]) -> None:
        self._answers = answers
        self.asked: list[str] = []

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        self.asked.append(host)
        if not self._answers:
            raise OSError(None, "no such host")
        addresses = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        return [
            ResolveResult(
                hostname=host,
                host=address,
                port=port,
                family=socket.AF_INET6 if ":" in address else socket.AF_INET,
                proto=0,
                flags=socket.AI_NUMERICHOST,
            )
            for address in addresses
        ]

    async def close(self) -> None:
        pass
