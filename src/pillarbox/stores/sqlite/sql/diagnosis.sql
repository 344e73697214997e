-- name: diagnosis_file
-- How the file is kept: its journal, its pages, and its free pages.
SELECT j.journal_mode, c.page_count, f.freelist_count, s.page_size
  FROM pragma_journal_mode AS j, pragma_page_count AS c, pragma_freelist_count AS f, pragma_page_size AS s

-- name: diagnosis_retried
-- Of the first pending messages, list those that were sent more often than a number of times.
SELECT substr(coalesce(last_error, ''), 1, 500), event_id
  FROM (SELECT event_id, last_error, attempts + deferrals AS deferrals FROM {message} ORDER BY recorded_at, id LIMIT :first)
 WHERE deferrals > :more_than
