-- How the file is kept: its journal, its pages, and those of them that nothing uses.
SELECT j.journal_mode, c.page_count, f.freelist_count, s.page_size
  FROM pragma_journal_mode AS j, pragma_page_count AS c, pragma_freelist_count AS f, pragma_page_size AS s;
