"""The web console: is it flowing, and if not, why? With a login, roles, masks, an audit and a JSON API.

    access logins users passwords sessions throttle     who may do what
    guard visiting                                      the door, and what every request passes
    pages/ api/ templates/ static/                      what is shown and done
    figures filters payloads masking json_text words    what pages are made of
    app                                                 the ASGI application
    opening serving                                     from settings to a port

Pages ask the store for a bounded number of statements and act through the functions that the commands use.
"""

from pillarbox.ops.console.access import Person, Role
from pillarbox.ops.console.app import Console
from pillarbox.ops.console.logins import HostLogin, NoLogin, ProxyLogin, UserLogin, UsersFile

__all__ = ["Console", "HostLogin", "NoLogin", "Person", "ProxyLogin", "Role", "UserLogin", "UsersFile"]
