-- An entry of the audit grows by what was done, and so much less is left.
UPDATE {audit}
   SET count = count + :done, detail = json_set(detail, '$.left', json_extract(detail, '$.left') - :done)
 WHERE audit_id = :act;
