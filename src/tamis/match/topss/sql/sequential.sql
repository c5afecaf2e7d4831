-- create_subs
-- One row for each predicate of each subscription; total says how many the subscription has.
CREATE TABLE subs (sid integer, attr integer, op smallint, val bigint, total integer);

-- create_subs_sid [postgresql]
-- Deleting finds the rows of a subscription; matching does not use it.
CREATE INDEX subs_sid ON subs (sid);

-- insert_subs
-- The predicates of new subscriptions.
INSERT INTO subs SELECT sid, attr, op, val, total FROM fresh;

-- delete_subs
-- All predicates of subscriptions that are gone.
DELETE FROM subs WHERE sid IN (SELECT sid FROM gone);

-- match
-- Every predicate is compared with the event's value of its attribute; those that hold are counted
-- for each subscription. An attribute with several values may count a predicate twice, so what
-- such an event matches is verified afterwards.
SELECT ev.event, subs.sid
FROM ev JOIN subs ON subs.attr = ev.attr
WHERE CASE subs.op
    WHEN 0 THEN ev.val = subs.val
    WHEN 1 THEN ev.val <= subs.val
    WHEN 2 THEN ev.val >= subs.val
    WHEN 3 THEN ev.val <> subs.val
    ELSE true
END
GROUP BY ev.event, subs.sid
HAVING count(*) >= max(subs.total);

-- compared
-- How many predicates an event is compared with, by attribute; for the tally.
SELECT attr, count(*) AS predicates FROM subs GROUP BY attr;

-- dump
-- Which subscription has which predicate; for checks.
SELECT sid, attr, op, val FROM subs;
