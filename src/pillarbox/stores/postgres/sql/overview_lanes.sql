-- Every lane and its owner.
SELECT lane, owner, epoch, crashes FROM {lane} ORDER BY lane
