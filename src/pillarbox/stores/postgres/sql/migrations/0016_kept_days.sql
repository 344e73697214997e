-- A day of history on which somebody's view or foreign key depends cannot be dropped: it is emptied, and the others go on.

CREATE OR REPLACE FUNCTION {history_drop}(older interval) RETURNS integer
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET lock_timeout = '100ms' AS $$
DECLARE
  -- Neither a missing nor a negative age reaches into today.
  newest CONSTANT pg_catalog.timestamptz :=
    pg_catalog.now() OPERATOR(pg_catalog.-) greatest(older, '0 seconds'::pg_catalog.interval);
  part pg_catalog.regclass; day pg_catalog.date; dropped pg_catalog.int4 := 0;
BEGIN
  FOR part, day IN
    SELECT c.oid::pg_catalog.regclass, pg_catalog.to_date(pg_catalog.right(c.relname, 8), 'YYYYMMDD')
    FROM pg_catalog.pg_inherits i JOIN pg_catalog.pg_class c ON c.oid OPERATOR(pg_catalog.=) i.inhrelid
    WHERE i.inhparent OPERATOR(pg_catalog.=) '{history}'::pg_catalog.regclass
      AND c.relname OPERATOR(pg_catalog.~) '_[0-9]{8}$' ORDER BY 2
  LOOP
    EXIT WHEN ((day OPERATOR(pg_catalog.+) 1)::pg_catalog.timestamp AT TIME ZONE 'UTC') OPERATOR(pg_catalog.>) newest;
    BEGIN
      EXECUTE pg_catalog.format('DROP TABLE %s', part);
      dropped := dropped OPERATOR(pg_catalog.+) 1;
    EXCEPTION
      -- A reader holds it: it goes the next time.
      WHEN lock_not_available THEN NULL;
      WHEN dependent_objects_still_exist THEN
        CONTINUE WHEN pg_catalog.pg_relation_size(part) OPERATOR(pg_catalog.=) 0;
        BEGIN
          EXECUTE pg_catalog.format('TRUNCATE TABLE %s', part);
          dropped := dropped OPERATOR(pg_catalog.+) 1;
        EXCEPTION
          WHEN lock_not_available THEN NULL;
          -- A foreign key refers to its rows: whoever made it keeps them.
          WHEN feature_not_supported THEN NULL;
        END;
    END;
  END LOOP;
  RETURN dropped;
END $$;
