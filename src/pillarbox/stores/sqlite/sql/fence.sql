-- The epoch under which the lane is owned now; asked inside the transaction that writes, which locks everybody out.
SELECT epoch FROM {lane} WHERE lane = 0;
