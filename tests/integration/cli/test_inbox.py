"""`pillarbox inbox list`: consumers and their statistics, on each engine."""

from pillarbox import Inbox
from pillarbox.core.statistics import ConsumerStatistics
from tests.integration.cli.conftest import Stock
from tests.integration.cli.running import pillarbox


def test_without_consumers_the_list_gives_advice(stock: Stock) -> None:
    done = pillarbox("inbox", "list", PILLARBOX_STORE=stock.url)
    assert (done.returncode, "pillarbox consume" in done.stdout) == (0, True)


def test_consumers_are_listed_with_their_statistics(stock: Stock) -> None:
    with stock.transaction() as transaction:
        Inbox().admit(transaction, "by hand", "e1")
        Inbox().add_statistics(transaction, ConsumerStatistics("billing", 1234, 1, 2, 1, "no address", 0.0))
        transaction.execute("UPDATE outbox_inbox SET received_at = '2001-01-01T00:00:00.000Z'")
    done = pillarbox("inbox", "list", PILLARBOX_STORE=stock.url)
    assert done.returncode == 0, done.stderr
    assert done.stderr == "inbox records are kept for 120 days; 1 are older: `pillarbox prune`\n"
    _, billing, by_hand = (line.split("\t") for line in done.stdout.splitlines())
    assert (billing[:7], billing[-1]) == (["billing", "0", "0", "1,234", "1", "2", "1"], "no address")
    assert by_hand == ["by hand", "1", "1", "", "", "", "", "", ""]
