-- Fragment: an entry of the audit grows by what was done, and so much less is left.
count = a.count + g.done, detail = a.detail || jsonb_build_object('left', (a.detail->>'left')::bigint - g.done)
