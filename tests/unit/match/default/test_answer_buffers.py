"""Room for answers: never shared with an answer that someone holds, and not made anew each time."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from tamis.match.default.passes.buffers import AnswerBuffers


def _answer(recycled: AnswerBuffers, used: int) -> NDArray[np.int32]:
    array = recycled.take()
    if len(array) < used:
        array = np.empty(2 * used, np.int32)
    recycled.keep(array, used)
    return array[:used]


def test_room_that_nobody_holds_is_used_again() -> None:
    recycled = AnswerBuffers()
    where = {_answer(recycled, 100).ctypes.data for _ in range(5)}
    assert len(where) == 1


def test_whoever_asks_in_a_loop_holds_one_answer_while_the_next_is_made() -> None:
    recycled = AnswerBuffers()
    where = []
    for _ in range(6):
        answer = _answer(recycled, 100)
        where.append(answer.ctypes.data)
    assert len(set(where)) == 2
    assert all(one != next_ for one, next_ in pairwise(where))


def test_answers_that_are_held_are_never_written_over() -> None:
    recycled = AnswerBuffers()
    answers = []
    for number in range(8):
        answer = _answer(recycled, 50 + number)
        answer[:] = number
        answers.append(answer)
    assert [int(answer.min()) for answer in answers] == list(range(8))
    assert [int(answer.max()) for answer in answers] == list(range(8))


def test_new_room_is_as_large_as_the_last_answer() -> None:
    """Too little of it, and a whole chunk of events would have to be matched again."""
    recycled = AnswerBuffers()
    held = [_answer(recycled, 1000), _answer(recycled, 1000)]
    assert len(held) == 2
    assert len(recycled.take()) >= 1000
