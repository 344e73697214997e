"""The web console: shows whether events flow and, if not, why. With login, roles, masking, audit and a JSON API.

    access logins users passwords sessions throttle          authentication and authorization
    guard request errors timeouts                            checks that every request passes
    pages/ api/ templates/ static/                           pages, actions and the API
    statistics filters payloads masking formatting           what pages are made of
    app context                                              the ASGI application and its shared context
    from_settings server                                     from settings to a port

Pages run a bounded number of statements, and act through the functions that the commands use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pillarbox.lazy_names import lazy_names

if TYPE_CHECKING:
    from pillarbox.ops.console.access import Role, User
    from pillarbox.ops.console.app import Console
    from pillarbox.ops.console.logins import HostLogin, NoLogin, ProxyLogin, UserLogin, UsersFile

__all__ = ["Console", "HostLogin", "NoLogin", "ProxyLogin", "Role", "User", "UserLogin", "UsersFile"]

if not TYPE_CHECKING:  # a type checker that saw it would believe every name
    # Masking and payloads are also for hosts without the web framework of the console.
    __getattr__ = lazy_names(
        __name__,
        {
            "Role": "access",
            "User": "access",
            "Console": "app",
            **dict.fromkeys(("HostLogin", "NoLogin", "ProxyLogin", "UserLogin", "UsersFile"), "logins"),
        },
    )
