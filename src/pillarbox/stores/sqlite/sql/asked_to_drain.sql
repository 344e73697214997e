-- Was this relay asked to drain?
SELECT drain_asked_by IS NOT NULL FROM {relay} WHERE id = :relay;
