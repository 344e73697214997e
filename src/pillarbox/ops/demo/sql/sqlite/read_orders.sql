-- Everything the shop committed, in its order.
SELECT order_id, event_id FROM {orders} ORDER BY position
