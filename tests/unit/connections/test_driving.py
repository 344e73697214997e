"""An operation is written once; called or awaited, it gets the same rows and failures."""

import pytest

from pillarbox.connections.connection import BoundStatement, Rows, Steps, adrive, drive

ASK = BoundStatement("ask", ("value",))
FAIL = BoundStatement("fail")


class DriverError(Exception):
    pass


def _execute(statement: BoundStatement) -> Rows:
    if statement is FAIL:
        raise DriverError
    return [statement.parameters]


async def _aexecute(statement: BoundStatement) -> Rows:
    return _execute(statement)


def _two_questions() -> Steps[list[Rows]]:
    first = yield ASK
    second = yield ASK
    return [first, second]


def _recovering() -> Steps[str]:
    try:
        yield FAIL
    except DriverError:
        yield ASK
        return "recovered"
    return "never failed"


def _failing() -> Steps[None]:
    yield FAIL


def _silent() -> Steps[str]:
    yield from ()
    return "nothing to ask"


async def test_rows_are_returned_to_the_statement() -> None:
    expected = [[("value",)], [("value",)]]
    assert drive(_two_questions(), _execute) == expected
    assert await adrive(_two_questions(), _aexecute) == expected


async def test_a_failure_is_raised_at_the_statement() -> None:
    assert drive(_recovering(), _execute) == "recovered"
    assert await adrive(_recovering(), _aexecute) == "recovered"


async def test_an_uncaught_failure_reaches_the_caller() -> None:
    with pytest.raises(DriverError):
        drive(_failing(), _execute)
    with pytest.raises(DriverError):
        await adrive(_failing(), _aexecute)


async def test_an_operation_may_run_no_statement() -> None:
    assert drive(_silent(), _execute) == "nothing to ask"
    assert await adrive(_silent(), _aexecute) == "nothing to ask"
