-- The limit of payloads as the table has it.
SELECT substring(pg_get_constraintdef(oid) FROM '<= (\d+)')::bigint FROM pg_constraint
WHERE conname = '{prefix}message_payload_ck' AND conrelid = to_regclass('{message}')
