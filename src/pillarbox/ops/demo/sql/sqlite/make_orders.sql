-- The shop's own table: one row per step of an order, in the order of the commits, with the id under which it is announced.
CREATE TABLE {orders} (
  position INTEGER PRIMARY KEY AUTOINCREMENT,
  order_id TEXT NOT NULL,
  state    TEXT NOT NULL,
  event_id TEXT NOT NULL UNIQUE
)
