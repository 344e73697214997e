-- Tables, indexes, views and triggers by name, with their text; what SQLite makes by itself has no text.
SELECT type, name, sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY type, name;
