"""The base of all servers: `with` starts a server and always closes it, also after a failed start."""

from __future__ import annotations

from abc import ABC, abstractmethod
from types import TracebackType
from typing import Self


class Server(ABC):
    @abstractmethod
    def start(self) -> None:
        """Returns when it takes connections."""

    @abstractmethod
    def close(self) -> None:
        """Ends it, if it runs, and removes what it left."""

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
