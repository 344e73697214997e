"""`python -m tests.drills.pooled_writer`: a writer of a drill behind a pooler."""

from __future__ import annotations

from pillarbox.ops.drill.writer_process import main
from tests.drills.pooled import PsycopgProducer, use_pooler

if __name__ == "__main__":
    use_pooler(PsycopgProducer)
    main()
