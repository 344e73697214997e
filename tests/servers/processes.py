"""Every process that the tests start: shipped in `pillarbox.testing.servers`."""

from pillarbox.testing.servers.processes import (
    Process,
    Registry,
    ServerFailed,
    Started,
    clean_environment,
    descendants,
    forget,
    hand_over,
    make_folder,
    registry,
    remove_folder,
    run,
    spawn,
    state,
    tail,
)

__all__ = [
    "Process",
    "Registry",
    "ServerFailed",
    "Started",
    "clean_environment",
    "descendants",
    "forget",
    "hand_over",
    "make_folder",
    "registry",
    "remove_folder",
    "run",
    "spawn",
    "state",
    "tail",
]
