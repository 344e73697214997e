"""The shipped RabbitMQ, and what only our tests do with a broker: Erlang, users, alarms and virtual hosts."""

from collections.abc import Mapping

from pillarbox.testing.servers import rabbitmq
from tests.servers import debian, processes


class RabbitMQServer(rabbitmq.RabbitMQServer):
    """One broker, see there. `settings` are lines of its configuration file."""

    def __init__(self, *, settings: Mapping[str, str] | None = None) -> None:
        self._ctl = debian.RABBITMQCTL.path()
        self._erl_call = debian.ERL_CALL.path()
        super().__init__(settings=settings)

    def ctl(self, *arguments: str) -> str:
        """Return what `rabbitmqctl` prints; ServerFailed if it fails.

        It starts an Erlang node, which takes a second of CPU time: `evaluate` is a hundred times cheaper.
        """
        return processes.run([self._ctl, "--quiet", *arguments], folder=self.folder, environment=self.environment())

    def evaluate(self, expressions: str) -> str:
        """Evaluate Erlang in the broker and return the last value as text; ServerFailed if it is an error.

        The text shows atoms, numbers and strings, but no binaries.
        """
        answer = processes.run(
            [self._erl_call, "-name" if "." in self.node else "-sname", self.node, "-e"],
            folder=self.folder,
            environment=self.environment(),
            input=f"{expressions}.\n",
            namespace=self.namespace,
        )
        if not answer.startswith("{ok, "):
            raise processes.ServerFailed(f"RabbitMQ on port {self.port} refused {expressions!r}:\n{answer}")
        return answer.removeprefix("{ok, ").removesuffix("}")

    def add_user(self, name: str, password: str) -> None:
        """Add a user that has no permissions."""
        self.evaluate(f'ok = rabbit_auth_backend_internal:add_user(<<"{name}">>, <<"{password}">>, <<"tests">>)')

    def delete_user(self, name: str) -> None:
        self.evaluate(f'ok = rabbit_auth_backend_internal:delete_user(<<"{name}">>, <<"tests">>)')

    def limit_memory(self, fraction: float) -> None:
        """Raise a memory alarm if the broker uses more than this fraction of the memory, else end it."""
        self._change_alarms(f"vm_memory_monitor:set_vm_memory_high_watermark({fraction:.9f})")

    def limit_disk(self, free: str) -> None:
        """Raise a disk alarm if less than this is free, else end it."""
        self._change_alarms(f'rabbit_disk_monitor:set_disk_free_limit("{free}")')

    def add_vhosts(self, *names: str) -> None:
        """Add virtual hosts for `guest`. They go with the broker."""
        all_rights = '<<".*">>, <<".*">>, <<".*">>'
        hosts = ", ".join(f'<<"{name}">>' for name in names)
        self.evaluate(
            f"""[begin
                ok = rabbit_vhost:add(Host, <<"tests">>),
                ok = rabbit_auth_backend_internal:set_permissions(<<"guest">>, Host, {all_rights}, <<"tests">>)
            end || Host <- [{hosts}]]"""
        )

    def _change_alarms(self, change: str) -> None:
        # The response arrives after every connection was notified of the alarm.
        self.evaluate(f"ok = {change}, rabbit_alarm:get_alarms()")
