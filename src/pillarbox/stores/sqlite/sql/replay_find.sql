-- A replay by its number.
SELECT at, count, detail FROM {audit} WHERE audit_id = :number AND what = 'replay';
