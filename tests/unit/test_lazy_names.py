"""Names of a package that are loaded when they are first used."""

import sys
from pathlib import Path

import pytest

PACKAGE = """
from pillarbox.lazy_names import lazy_names

__getattr__ = lazy_names(__name__, {"Transport": "transport", "Missing": "transport", "Driven": "driven"})
"""


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A package whose `transport` has the name that it promises, and whose `driven` needs a driver."""
    name = f"lazy_package_{tmp_path.name.replace('-', '_')}"
    folder = tmp_path / name
    folder.mkdir()
    (folder / "__init__.py").write_text(PACKAGE)
    (folder / "transport.py").write_text("class Transport: ...\n")
    (folder / "driven.py").write_text("raise ImportError('install the driver')\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    return name


def test_a_module_is_imported_when_its_name_is_first_used(package: str) -> None:
    loaded = __import__(package)
    assert f"{package}.transport" not in sys.modules
    first = loaded.Transport
    assert first is sys.modules[f"{package}.transport"].Transport
    assert vars(loaded)["Transport"] is first  # later uses do not ask again


def test_an_unknown_name_is_an_attribute_error(package: str) -> None:
    loaded = __import__(package)
    with pytest.raises(AttributeError, match=f"module '{package}' has no attribute 'Transprot'"):
        _ = loaded.Transprot
    with pytest.raises(AttributeError, match="Missing"):
        _ = loaded.Missing
    assert not hasattr(loaded, "__path_of_nothing__")


def test_a_missing_driver_is_reported_when_the_name_is_used(package: str) -> None:
    loaded = __import__(package)
    with pytest.raises(ImportError, match="install the driver"):
        _ = loaded.Driven


@pytest.mark.parametrize("name", ["Binding", "Queue", "RabbitMQAddress", "RabbitMQSource", "RabbitMQTransport"])
def test_names_of_our_packages_are_those_of_their_modules(name: str) -> None:
    import pillarbox.transports.rabbitmq as package

    assert getattr(package, name).__module__.startswith("pillarbox.transports.rabbitmq.")
