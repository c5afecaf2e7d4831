-- create_pids
-- Predicate numbers.
CREATE SEQUENCE pids;

-- create_subs
-- How many predicates each subscription has.
CREATE TABLE subs (sid integer, cnt integer);

-- create_preds
-- Each distinct predicate once.
CREATE TABLE preds (
    pid integer DEFAULT nextval('pids'), attr integer, op smallint, val bigint
);

-- create_subs_preds
-- Which subscription has which predicates.
CREATE TABLE subs_preds (sid integer, pid integer);

-- create_subs_sid [postgresql]
-- Finds the count of a subscription.
CREATE UNIQUE INDEX subs_sid ON subs (sid);

-- create_preds_attr_op_val [postgresql]
-- Finds an existing predicate, and the predicates that a value satisfies.
CREATE UNIQUE INDEX preds_attr_op_val ON preds (attr, op, val);

-- create_preds_pid [postgresql]
-- Finds a predicate that may be unused now.
CREATE UNIQUE INDEX preds_pid ON preds (pid);

-- create_subs_preds_pid [postgresql]
-- Finds the subscriptions of a predicate.
CREATE INDEX subs_preds_pid ON subs_preds (pid);

-- create_subs_preds_sid [postgresql]
-- Finds the predicates of a subscription.
CREATE INDEX subs_preds_sid ON subs_preds (sid);

-- insert_preds
-- Adds the predicates that no subscription had before.
INSERT INTO preds (attr, op, val)
SELECT DISTINCT attr, op, val FROM fresh
WHERE NOT EXISTS (
    SELECT 1 FROM preds
    WHERE preds.attr = fresh.attr AND preds.op = fresh.op AND preds.val = fresh.val
);

-- insert_subs
-- Adds the new subscriptions.
INSERT INTO subs SELECT DISTINCT sid, total FROM fresh;

-- insert_subs_preds
-- Associates the new subscriptions with their predicates.
INSERT INTO subs_preds
SELECT fresh.sid, preds.pid
FROM fresh
JOIN preds ON preds.attr = fresh.attr AND preds.op = fresh.op AND preds.val = fresh.val;

-- delete_preds
-- Deletes predicates that only the deleted subscriptions had.
DELETE FROM preds
WHERE pid IN (SELECT pid FROM subs_preds WHERE sid IN (SELECT sid FROM gone))
AND NOT EXISTS (
    SELECT 1 FROM subs_preds AS kept
    WHERE kept.pid = preds.pid
    AND NOT EXISTS (SELECT 1 FROM gone WHERE gone.sid = kept.sid)
);

-- delete_subs_preds
-- Deletes the associations of the deleted subscriptions.
DELETE FROM subs_preds WHERE sid IN (SELECT sid FROM gone);

-- delete_subs
-- Deletes the subscriptions.
DELETE FROM subs WHERE sid IN (SELECT sid FROM gone);

-- match
-- Compares each distinct predicate once, counts the satisfied ones per subscription, and returns
-- the subscriptions whose predicates are all satisfied.
WITH satisfied AS (
    SELECT DISTINCT ev.event, preds.pid
    FROM ev JOIN preds ON preds.attr = ev.attr
    WHERE CASE preds.op
        WHEN 0 THEN ev.val = preds.val
        WHEN 1 THEN ev.val <= preds.val
        WHEN 2 THEN ev.val >= preds.val
        WHEN 3 THEN ev.val <> preds.val
        ELSE true
    END
), counted AS (
    SELECT satisfied.event, subs_preds.sid, count(*) AS hits
    FROM satisfied JOIN subs_preds ON subs_preds.pid = satisfied.pid
    GROUP BY satisfied.event, subs_preds.sid
)
SELECT counted.event, counted.sid
FROM counted JOIN subs ON subs.sid = counted.sid
WHERE counted.hits = subs.cnt;

-- match_event
-- The paper's statement for one event; the name in braces stands for the conditions on its values.
SELECT subs.sid
FROM subs
JOIN (
    SELECT sid, count(*) AS hits FROM subs_preds
    WHERE pid IN (SELECT pid FROM preds WHERE {pairs})
    GROUP BY sid
) AS counted ON counted.sid = subs.sid
WHERE counted.hits = subs.cnt;

-- pair
-- The condition on one value of an event; the names in braces stand for its attribute and value.
(attr = {attr} AND (
    (op = 0 AND val = {val}) OR
    (op = 1 AND val >= {val}) OR
    (op = 2 AND val <= {val}) OR
    (op = 3 AND val <> {val}) OR
    op = 4
));

-- compared
-- The number of predicates compared with an event, by attribute; for the tally.
SELECT attr, count(*) AS predicates FROM preds GROUP BY attr;

-- dump
-- Which subscription has which predicate; for checks.
SELECT subs_preds.sid, preds.attr, preds.op, preds.val
FROM subs_preds
JOIN preds ON preds.pid = subs_preds.pid
JOIN subs ON subs.sid = subs_preds.sid;

-- check_preds
-- Finds duplicate or unused predicates; the result should be empty.
SELECT pid FROM preds WHERE NOT EXISTS (
    SELECT 1 FROM subs_preds WHERE subs_preds.pid = preds.pid
)
UNION ALL
SELECT min(pid) FROM preds GROUP BY attr, op, val HAVING count(*) > 1;
