-- Fragment: of what was delivered, only one key, by its own index.
AND m.key = $5
