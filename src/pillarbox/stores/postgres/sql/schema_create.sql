-- Make the schema the tables go to. Not IF NOT EXISTS, which asks for the right to create even where it is there.
CREATE SCHEMA {schema_name}
