-- Four roles: who may do what. Run as the owner of the tables; the roles exist already. Safe to run again.

GRANT USAGE ON SCHEMA {schema_name} TO {producer}, {relay_role}, {reader};

-- producer: records events, and admits them in the inbox. Nothing else.
GRANT INSERT ON {message} TO {producer};
GRANT EXECUTE ON FUNCTION
  {record}(text, text, text, text, text, jsonb, text, timestamptz, text, text, integer, text, text, text, timestamptz, boolean),
  {record}(text, jsonb, text, text, text, jsonb, text, timestamptz, text, text, integer, text, text, text, timestamptz, boolean)
  TO {producer};
GRANT INSERT ON {inbox} TO {producer};
GRANT SELECT (consumer, event_id) ON {inbox} TO {producer};
GRANT SELECT, INSERT, UPDATE ON {inbox_statistics} TO {producer};

-- relay: carries messages, settles them, keeps house.
GRANT SELECT, INSERT, UPDATE, DELETE ON {message}, {history}, {history_default}, {dead_letter}, {relay}, {attempt}, {sample}, {request},
  {destination}, {inbox}, {inbox_statistics}, {ledger} TO {relay_role};
GRANT SELECT, UPDATE ON {lane} TO {relay_role};
GRANT SELECT, INSERT, DELETE, UPDATE (count, detail) ON {audit} TO {relay_role};
GRANT SELECT ON {schema}, {event} TO {relay_role};
GRANT SELECT ON SEQUENCE {message_id_seq} TO {relay_role}, {reader};
GRANT EXECUTE ON FUNCTION {history_create}(integer), {history_drop}(interval) TO {relay_role};

-- reader: sees everything, changes nothing.
GRANT SELECT ON {message}, {history}, {dead_letter}, {lane}, {relay}, {attempt}, {sample}, {request}, {destination}, {audit},
  {schema}, {event}, {inbox}, {inbox_statistics}, {ledger} TO {reader};

-- The views of `schema apply --aliases`, where they exist: their triggers run with the rights of the role that fires them.
DO $$ BEGIN
  IF to_regclass('{outbox_moved}') IS NOT NULL THEN
    GRANT INSERT ON {events_alias}, {outbox_alias}, {integration_event} TO {producer};
    GRANT SELECT, INSERT, UPDATE, DELETE ON {events_alias}, {outbox_alias}, {integration_event}, {outbox_dlq} TO {relay_role};
    GRANT SELECT, INSERT, DELETE ON {outbox_archive} TO {relay_role};
    GRANT INSERT ON {outbox_moved} TO {relay_role};
    GRANT SELECT, INSERT, UPDATE, DELETE ON {processed_event} TO {relay_role};
    GRANT SELECT ON {events_alias}, {outbox_alias}, {integration_event}, {outbox_dlq}, {outbox_archive},
      {processed_event} TO {reader};
  END IF;
END $$;

-- migrator: may change the tables. Membership in the owner's role does it without handing the tables over.
GRANT {owner} TO {migrator};
