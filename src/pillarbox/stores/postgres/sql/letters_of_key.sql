-- Fragment: dead letters of one key, by its own index.
AND m.key = $3
