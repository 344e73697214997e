"""System checks, and what DATABASES becomes as an address."""

import os
from typing import Any
from unittest import mock

from django.core.checks import CheckMessage, run_checks
from django.db import connections
from django.test import SimpleTestCase, TestCase, override_settings

from pillarbox import ConfigurationError
from pillarbox.integrations.django.configuration import store_url

IMPORT = {"transports": {"shop": {"import": "shop.events:handlers"}}}


def found(*, databases: list[str] | None = None) -> list[tuple[str, str]]:
    messages: list[CheckMessage] = run_checks(databases=databases)
    return [(str(one.id), one.msg) for one in messages if str(one.id).startswith("pillarbox.")]


class Settings(TestCase):
    databases = {"default", "second"}

    def expect(self, identity: str, text: str) -> None:
        [(one, message)] = found()
        self.assertEqual(one, identity)
        self.assertIn(text, message)

    def test_valid_settings_and_tables_pass(self) -> None:
        self.assertEqual(found(databases=["default", "second"]), [])

    @override_settings(PILLARBOX={"relay": {"batchsize": 100}})
    def test_an_unknown_setting(self) -> None:
        self.expect("pillarbox.E001", "did you mean relay.batch_size?")

    @override_settings(PILLARBOX={"store": {"prefix": 'shop"; DROP TABLE x'}})
    def test_an_invalid_prefix(self) -> None:
        self.expect("pillarbox.E001", "store.prefix")

    @override_settings(PILLARBOX=["relay"])
    def test_settings_that_are_no_dict(self) -> None:
        self.expect("pillarbox.E001", "is a list: write a dict")

    @override_settings(PILLARBOX={"relay": {3: 4}})
    def test_a_key_that_is_no_text(self) -> None:
        self.expect("pillarbox.E001", "has the key 3")

    @override_settings(PILLARBOX={"database": "third"})
    def test_a_database_that_does_not_exist(self) -> None:
        self.expect("pillarbox.E001", "DATABASES has no database 'third'; there are default, second")

    @override_settings(PILLARBOX={"transports": {"shop": {"import": "shop.nowhere:handlers"}}})
    def test_handlers_in_a_module_that_does_not_exist(self) -> None:
        self.expect("pillarbox.E002", "shop.nowhere")

    @override_settings(PILLARBOX={"transports": {"shop": {"import": "shop.models:Note"}}})
    def test_an_object_that_is_no_registry_of_handlers(self) -> None:
        self.expect("pillarbox.E002", "not Handlers")

    def test_an_engine_that_is_not_supported(self) -> None:
        with mock.patch.object(type(connections["default"]), "vendor", "oracle"):
            self.expect("pillarbox.E001", "which Pillarbox does not support: use PostgreSQL, MariaDB or SQLite")

    def test_a_database_without_autocommit(self) -> None:
        with mock.patch.dict(connections["default"].settings_dict, AUTOCOMMIT=False):
            self.expect("pillarbox.W002", "AUTOCOMMIT")

    def test_a_variable_that_names_another_store(self) -> None:
        with mock.patch.dict(os.environ, PILLARBOX_STORE="postgresql://elsewhere/production"):
            self.expect("pillarbox.E001", "PILLARBOX_STORE is set, but DATABASES['default'] decides on it")

    @override_settings(PILLARBOX=IMPORT | {"store": {"prefix": "moved_"}})
    def test_missing_tables(self) -> None:
        [(identity, text)] = found(databases=["default"])
        self.assertEqual(identity, "pillarbox.W001")
        self.assertIn("has no tables of Pillarbox", text)


class Addresses(SimpleTestCase):
    databases = {"default"}

    def url(self, vendor: str, **settings: Any) -> str:
        empty = {"NAME": "shop", "USER": "", "PASSWORD": "", "HOST": "", "PORT": "", "OPTIONS": {}}
        connection = connections["default"]
        with (
            mock.patch.object(type(connection), "vendor", vendor),
            mock.patch.dict(connection.settings_dict, empty | settings),
        ):
            return store_url("default")

    def test_postgresql(self) -> None:
        login = {"USER": "a@b", "PASSWORD": "p/w:?", "HOST": "db.example.org", "PORT": 5433, "NAME": "my shop"}
        self.assertEqual(
            self.url("postgresql", **login), "postgresql://a%40b:p%2Fw%3A%3F@db.example.org:5433/my%20shop"
        )
        self.assertEqual(self.url("postgresql", HOST="::1", PORT="5432"), "postgresql://[::1]:5432/shop")
        self.assertEqual(self.url("postgresql", HOST="/run/pg"), "postgresql:///shop?host=%2Frun%2Fpg")
        options = {"sslmode": "verify-full", "sslrootcert": "/ca.pem", "pool": True}
        self.assertEqual(
            self.url("postgresql", HOST="db", OPTIONS=options),
            "postgresql://db/shop?sslmode=verify-full&sslrootcert=%2Fca.pem",
        )

    def test_several_servers_of_postgresql(self) -> None:
        for port, url in (
            ("6432", "postgresql://db1:6432,db2:6432/shop"),
            ("6432,6433", "postgresql://db1:6432,db2:6433/shop"),
            ("", "postgresql://db1,db2/shop"),
        ):
            self.assertEqual(self.url("postgresql", HOST="db1,db2", PORT=port), url)
        self.assertEqual(self.url("postgresql", HOST="::1,db2", PORT="1"), "postgresql://[::1]:1,db2:1/shop")
        with self.assertRaisesRegex(ConfigurationError, "3 HOSTs and 2 PORTs: write one PORT"):
            self.url("postgresql", HOST="a,b,c", PORT="1,2")

    def test_mariadb(self) -> None:
        options = {"ssl": {"ca": "/ca.pem"}, "charset": "utf8mb4"}
        self.assertEqual(self.url("mysql", HOST="db", OPTIONS=options), "mariadb://db/shop?ssl_ca=%2Fca.pem")
        self.assertEqual(self.url("mysql", HOST="/run/my.sock"), "mariadb:///shop?unix_socket=%2Frun%2Fmy.sock")
        with self.assertRaisesRegex(ConfigurationError, "read_default_file|takes its address from the file"):
            self.url("mysql", OPTIONS={"read_default_file": "~/.my.cnf"})

    def test_sqlite(self) -> None:
        self.assertEqual(self.url("sqlite", NAME="/data/my shop.db"), "sqlite:////data/my shop.db")
        for memory in (":memory:", "file:memorydb_default?mode=memory&cache=shared"):
            with self.assertRaisesRegex(ConfigurationError, r"name a file; for tests in .*\['TEST'\]\['NAME'\]"):
                self.url("sqlite", NAME=memory)
