"""Handlers that `manage.py pillarbox_relay` calls, in threads of its own."""

from pillarbox import HandlerContext, Handlers, ReceivedEvent

from .models import Order

handlers = Handlers()


@handlers.on("order.placed", name="confirm_order")
def confirm_order(event: ReceivedEvent, context: HandlerContext) -> None:
    """Confirm the order. The relay may call it twice: to confirm twice changes nothing."""
    Order.objects.filter(pk=event.payload["order"]).update(confirmed=True)
