-- create_subs
-- One row per predicate of each subscription; total is the subscription's number of predicates.
CREATE TABLE subs (sid integer, attr integer, op smallint, val bigint, total integer);

-- create_subs_sid [postgresql]
-- Finds the rows of a subscription to delete; matching does not use it.
CREATE INDEX subs_sid ON subs (sid);

-- insert_subs
-- Adds the predicates of new subscriptions.
INSERT INTO subs SELECT sid, attr, op, val, total FROM fresh;

-- delete_subs
-- Deletes all predicates of the deleted subscriptions.
DELETE FROM subs WHERE sid IN (SELECT sid FROM gone);

-- match
-- Compares every predicate with the event's values of its attribute and counts those that hold for
-- each subscription. An attribute with several values may count a predicate twice, so the matches
-- of such an event are verified afterwards.
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

-- match_event
-- The paper's statement for one event; the name in braces stands for the conditions on its values.
SELECT sid FROM subs WHERE {pairs} GROUP BY sid HAVING count(*) >= max(total);

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
SELECT attr, count(*) AS predicates FROM subs GROUP BY attr;

-- dump
-- Which subscription has which predicate; for checks.
SELECT sid, attr, op, val FROM subs;
