-- Fragment: of what waits, only that which holds its key until a person decides.
AND m.held = 'blocked'
