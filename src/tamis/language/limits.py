"""How large a condition may be. Each limit is checked before any work that grows with it."""

TEXT_LIMIT = 64 * 1024  # bytes of UTF-8
DEPTH_LIMIT = 100  # levels of parentheses and `not`
LIST_LIMIT = 10_000  # values in one `in`
CLAUSE_LIMIT = 256
PREDICATE_LIMIT = 64  # in one clause
VALUE_LIMIT = 100_000  # in all lists of all clauses together
