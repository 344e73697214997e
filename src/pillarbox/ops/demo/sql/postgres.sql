-- name: create_orders
-- Create the shop's own table: one row per step of an order, in commit order, with the id of its event.
CREATE TABLE {orders} (
  position bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  order_id text NOT NULL,
  state    text NOT NULL,
  event_id text NOT NULL UNIQUE
)

-- name: write_step
-- Write one step of an order.
INSERT INTO {orders} (order_id, state, event_id) VALUES ($1, $2, $3)

-- name: read_orders
-- Read every step the shop committed, in order.
SELECT order_id, event_id FROM {orders} ORDER BY position

-- name: remove
-- Drop the schema of the demo, with shop and outbox.
DROP SCHEMA {schema_name} CASCADE
