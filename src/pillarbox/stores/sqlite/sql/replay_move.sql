-- Write how far a replay is.
UPDATE {audit} SET count = count + :copied, detail = json_patch(detail, :position) WHERE audit_id = :number;
