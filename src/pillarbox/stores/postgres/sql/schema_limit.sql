-- Limit the size of payloads that come in. A trigger, since a CHECK would also refuse the settlement of what is there already.
CREATE OR REPLACE FUNCTION {payload_limit}() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  -- The relay and operators move what the table accepted before under a higher limit; a producer may not claim to be one.
  IF current_setting('pillarbox.internal', true) = 'on' AND has_table_privilege(TG_RELID, 'DELETE') THEN
    RETURN NEW;
  END IF;
  RAISE EXCEPTION USING ERRCODE = 'check_violation', CONSTRAINT = '{prefix}message_payload_ck',
    MESSAGE = format('the payload has %s bytes, max_payload allows {max_payload}', octet_length(NEW.payload));
END $$;
CREATE OR REPLACE TRIGGER "{prefix}message_payload_limit" BEFORE INSERT ON {message} FOR EACH ROW
  WHEN (octet_length(NEW.payload) > {max_payload}) EXECUTE FUNCTION {payload_limit}()
