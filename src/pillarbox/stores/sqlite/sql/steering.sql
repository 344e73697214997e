-- Destinations for which people set something or an error is noted.
SELECT destination, paused, breaker, rate_limit, last_error
  FROM {destination}
 WHERE paused OR breaker IS NOT NULL OR rate_limit IS NOT NULL OR last_error IS NOT NULL
 ORDER BY destination;
