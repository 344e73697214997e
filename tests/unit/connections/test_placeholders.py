"""One statement in three placeholder styles."""

from pillarbox.connections.placeholders import Style, render

SQL = "SELECT $1::text, '100 %', json_extract(x, '$[0]') WHERE a = $2"


def test_dollar_placeholders_stay_unchanged() -> None:
    assert render(SQL, Style.DOLLAR) == SQL


def test_percent_signs_in_the_text_are_doubled() -> None:
    assert render(SQL, Style.PERCENT) == "SELECT %s::text, '100 %%', json_extract(x, '$[0]') WHERE a = %s"


def test_question_marks_do_not_affect_json_paths() -> None:
    assert render(SQL, Style.QUESTION) == "SELECT ?::text, '100 %', json_extract(x, '$[0]') WHERE a = ?"
