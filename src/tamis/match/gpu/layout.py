"""The constants of the index on a GPU, as in `kernels.cu`."""

TILE = 4096  # slots of a tile: a line of bits has 128 words
WORDS = TILE // 32
SEVERAL = 0xFFFF  # in place of a line: the event has several values of the attribute

# Ranks. A value is compared with the edges of its column: at edge i its rank is
# FIRST_GAP + 2 i + 1, below it and above the one before FIRST_GAP + 2 i. So an odd rank says all,
# and an even rank leaves open how the value compares with an end of an interval in the same gap.
NOT_BOUND = 1
OPEN_LOW = 2  # of an interval that has no low end
FIRST_GAP = 4
LAST_RANK = 65534
OPEN_HIGH = 65535  # of an interval that has no high end
MOST_EDGES = (LAST_RANK - FIRST_GAP) // 2

# States of a slot: no clause; ranks decide; rows of the clause decide.
DEAD, PLAIN, BY_ROWS = 0, 1, 2

WARPS = 32  # of a block that finds matches: one block fills a multiprocessor
QUEUE_BYTES = 512  # of a warp, in shared memory


def stride(columns: int) -> int:
    """The places of an event: one for each column, then whether any is SEVERAL."""
    return (columns + 8) // 8 * 8
