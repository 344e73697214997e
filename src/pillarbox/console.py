"""The web console as an ASGI application, for mounting in one of your own: see the guide on the console."""

from pillarbox.ops.console import Console, HostLogin, NoLogin, ProxyLogin, Role, User, UserLogin, UsersFile

__all__ = ["Console", "HostLogin", "NoLogin", "ProxyLogin", "Role", "User", "UserLogin", "UsersFile"]
