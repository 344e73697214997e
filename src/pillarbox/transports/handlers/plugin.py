"""Handlers of the application as an adapter."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from pillarbox.core.transport import Address
from pillarbox.plugins import TransportDiagnosis, TransportPlugin
from pillarbox.settings import Text, setting
from pillarbox.transports.handlers.transport import HandlerAddress


@dataclass(frozen=True, slots=True, kw_only=True)
class HandlerOptions:
    """The settings of a destination that is a handler."""

    python_name: ClassVar[str] = "Handlers.to"

    handler: str | None = setting(None, Text(), "The handler's name. Not set: the name of the destination.")


class HandlerPlugin(TransportPlugin):
    """Handlers of the application: there is no URL, `import` in the settings names the object."""

    kind = "handlers"
    default_routing = "each event to every handler of its type in {}"

    def address(self, destination: str, options: Mapping[str, Any]) -> Address:
        return HandlerAddress(name=options.get("handler") or destination)

    def diagnosis(
        self, url: str, options: Mapping[str, Any], addresses: Mapping[str, Address]
    ) -> TransportDiagnosis | None:
        return None
