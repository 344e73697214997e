-- A dead letter that waits again gets another content.
UPDATE {message} SET payload = :payload, headers = :headers WHERE place < 0;
