"""The objects of a PostgreSQL database, as the catalogs describe them."""

import psycopg

_OBJECTS = r"""
SELECT 'table ' || c.relname || ' ' || c.relkind::text || ' ' ||
       coalesce(array_to_string(c.reloptions, ','), '') || ' ' ||
       coalesce(string_agg(a.attname || ' ' || format_type(a.atttypid, a.atttypmod) || ' ' || a.attnotnull || ' ' ||
                coalesce(pg_get_expr(d.adbin, d.adrelid), ''), ', ' ORDER BY a.attnum), '')
  FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0
  LEFT JOIN pg_attrdef d ON d.adrelid = c.oid AND d.adnum = a.attnum
 WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p', 'v')
 GROUP BY c.oid
UNION ALL SELECT 'index ' || tablename || ' ' || indexdef FROM pg_indexes WHERE schemaname = 'public'
UNION ALL SELECT 'constraint ' || conrelid::regclass || ' ' || conname || ' ' || pg_get_constraintdef(oid)
            FROM pg_constraint
           WHERE connamespace = 'public'::regnamespace AND conrelid <> 0
UNION ALL SELECT 'function ' || proname || ' ' || pg_get_functiondef(oid) FROM pg_proc
           WHERE pronamespace = 'public'::regnamespace
UNION ALL SELECT 'view ' || viewname || ' ' || definition FROM pg_views WHERE schemaname = 'public'
UNION ALL SELECT 'trigger ' || tgrelid::regclass || ' ' || pg_get_triggerdef(oid) FROM pg_trigger WHERE NOT tgisinternal
"""


def catalog(url: str, *prefixes: str, without: tuple[str, ...] = ()) -> set[str]:
    """Descriptions of the tables, indexes, constraints, functions, views and triggers whose names begin like this."""
    with psycopg.connect(url) as connection:
        found = {str(text) for (text,) in connection.execute(_OBJECTS.encode())}
    return {
        text
        for text in found
        if text.split()[1].startswith(prefixes) and not text.split()[1].startswith(without or ("\0",))
    }
