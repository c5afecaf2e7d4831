-- create_fresh
-- Receives the predicates of new subscriptions by COPY.
CREATE TEMP TABLE fresh (sid integer, attr integer, op smallint, val bigint, total integer)
ON COMMIT DELETE ROWS;

-- create_gone
-- Receives the subscriptions to delete by COPY.
CREATE TEMP TABLE gone (sid integer) ON COMMIT DELETE ROWS;

-- match
-- Events are passed as three arrays; the result is one row of two arrays and needs no parsing. The
-- name in braces stands for the algorithm's own statement.
WITH ev AS (
    SELECT * FROM unnest(%s::integer[], %s::integer[], %s::bigint[]) AS pair (event, attr, val)
), answer AS (
    {match}
)
SELECT array_agg(event), array_agg(sid) FROM answer;

-- match_event
-- The result of a statement for one event is one array and needs no parsing.
SELECT array_agg(sid) FROM ({match}) AS answer;

-- nbytes
-- Bytes of the tables and indexes of this session.
SELECT coalesce(sum(pg_total_relation_size(oid)), 0)::bigint
FROM pg_class WHERE relnamespace = pg_my_temp_schema() AND relkind = 'r';
