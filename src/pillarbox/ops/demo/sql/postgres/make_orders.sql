-- The shop's own table: one row per step of an order, in the order of the commits, with the id under which it is announced.
CREATE TABLE {orders} (
  position bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  order_id text NOT NULL,
  state    text NOT NULL,
  event_id text NOT NULL UNIQUE
)
