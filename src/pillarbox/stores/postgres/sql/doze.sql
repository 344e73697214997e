-- Tell producers until when this relay sleeps; null = it is awake.
UPDATE {relay} SET asleep_until = now() + $2::double precision * interval '1 second' WHERE id = $1
