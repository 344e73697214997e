-- The limit of payloads as the table has it.
SELECT substring(pg_get_triggerdef(oid) FROM '> (\d+)')::bigint FROM pg_trigger
WHERE tgname = '{prefix}message_payload_limit' AND tgrelid = to_regclass('{message}')
