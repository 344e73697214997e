-- Take the lane if it is free or its owner is gone, under a new epoch; one crash more if the owner did not leave.
UPDATE {lane} AS l
   SET owner = :relay, epoch = l.epoch + 1, crashes = l.crashes + (l.owner IS NOT NULL)
 WHERE l.owner IS NULL OR NOT EXISTS (SELECT 1 FROM {relay} AS r WHERE r.id = l.owner)
RETURNING lane, epoch, crashes;
