-- Fragment: the database's clock, as every time is written.
strftime('%Y-%m-%dT%H:%M:%fZ', 'now')
