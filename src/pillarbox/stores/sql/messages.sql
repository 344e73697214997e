-- The fragments of messages that are the same in every SQL engine.

-- fragment: about
-- What a message is about.
{row}event_type, {row}aggregate_type, {row}aggregate_id

-- fragment: content
-- What a message carries.
{row}payload, {row}content_type, {row}headers, {context:row}

-- fragment: context
-- The version and the trace of a message.
{row}schema_version, {row}correlation_id, {row}causation_id, {row}trace_id

-- fragment: dead_columns
-- The columns of a dead letter, in the order in which a message fills them.
id, event_id, destination, {about}, ordering_key, "key", {content}, occurred_at,
recorded_at, attempts, deferrals, error, first_failed_at, last_attempt_at

-- fragment: duplicate_error
-- The error of a message whose event id is already pending for its destination with another payload.
'event id ' || {duplicate_id} || ' is already pending for ' || {duplicate_destination}
|| ' with another payload: give each event its own id'

-- fragment: largest_count
-- The number at which attempts and deferrals stop to count: it fits into every integer column.
1000000000

-- fragment: largest_sequence
-- A number above the sequences of all messages.
9223372036854775807
