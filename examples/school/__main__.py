"""`python -m examples.school [URL]`: one day at school."""

from __future__ import annotations

import asyncio
import sys
from uuid import UUID, uuid4

from examples.school.grades import NoSuchMark
from examples.school.school import School


def notify(student_id: UUID, text: str) -> None:
    # Handlers run in threads: one write is one line, where `print` makes two of it.
    sys.stdout.write(f"to the parents of {student_id}: {text}\n")


async def main(url: str) -> None:
    ada, ben = uuid4(), uuid4()
    async with School(url, notify) as school:
        school.attendance.submit_absence_notice(uuid4(), ada, correlation_id="req-123", trace_id="trace-456")
        school.grades.publish_grades("mathematics", {ada: 1, ben: 2})
        try:
            school.grades.publish_grades("music", {ada: 2, ben: 7})
        except NoSuchMark as error:
            print(f"rolled back: {error}")
        await school.relay().run_until_empty()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else "sqlite:///school.db"))
