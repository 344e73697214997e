-- name: create_orders
-- Create the shop's own table: one row per step of an order, in commit order, with the id of its event.
CREATE TABLE {orders} (
  position INTEGER PRIMARY KEY AUTOINCREMENT,
  order_id TEXT NOT NULL,
  state    TEXT NOT NULL,
  event_id TEXT NOT NULL UNIQUE
)

-- name: write_step
-- Write one step of an order.
INSERT INTO {orders} (order_id, state, event_id) VALUES (?, ?, ?)

-- name: read_orders
-- Read every step the shop committed, in order.
SELECT order_id, event_id FROM {orders} ORDER BY position
