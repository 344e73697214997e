-- One step of an order.
INSERT INTO {orders} (order_id, state, event_id) VALUES (?, ?, ?)
