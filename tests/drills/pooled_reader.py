"""`python -m tests.drills.pooled_reader`: a reader of a drill behind a pooler."""

from __future__ import annotations

from pillarbox.ops.drill.reader_process import main
from tests.drills.pooled import AsyncpgProducer, use_pooler

if __name__ == "__main__":
    use_pooler(AsyncpgProducer)
    main()
