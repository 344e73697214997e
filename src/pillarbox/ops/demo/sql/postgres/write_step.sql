-- One step of an order.
INSERT INTO {orders} (order_id, state, event_id) VALUES ($1, $2, $3)
