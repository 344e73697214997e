-- Fragment: dead letters of one key, by its own index.
AND m.key = :key
