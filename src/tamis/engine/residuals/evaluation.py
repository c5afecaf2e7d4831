"""Runs the programs of residuals on candidates.

One value of an attribute must satisfy all instructions about "the value". Most attributes have one.
Of an attribute with several, a run chooses the first; if the run ends in no, the next run takes the
next value of the attribute that was chosen last, like an odometer. So only attributes that the
program really asks about are tried.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tamis.encode.batch import Pairs
from tamis.engine.residuals.ages import ZERO
from tamis.engine.residuals.program import AGE, ANY, MISSES, NOT_ANY, SPECIAL, VALUE
from tamis.engine.residuals.program_table import Programs
from tamis.engine.residuals.special_tests import NO, UNDECIDED, YES
from tamis.files.arrays import Int8s, Int64s
from tamis.index.kernel import kernel
from tamis.model.times.moments import NO_MOMENT

_RUNS = 1 << 16  # of one program on one event; a program of n questions has up to n of them


@kernel
def run_programs(
    pairs: Pairs,
    events: Int64s,
    slots: Int64s,
    programs: Programs,
    width: int,
    asked: Int64s,
    answers: Int8s,
    tests: int,
    moments: Int64s,
) -> Int8s:
    """For each (event, slot), by ascending event: NO, YES, or UNDECIDED after too many runs.

    `asked` are the sorted keys `event * tests + test` of the special tests with an answer.
    `moments` are those of the events, if a program asks for them.
    """
    verdicts = np.zeros(len(events), np.int8)
    first, last = np.zeros(width, np.int64), np.zeros(width, np.int64)
    choice = np.full(width, -1, np.int64)
    chosen = np.empty(width, np.int64)
    event = -1
    for candidate in range(len(events)):
        if events[candidate] != event:
            if event >= 0:
                for pair in range(pairs.starts[event], pairs.starts[event + 1]):
                    last[pairs.attribute[pair]] = 0
            event = events[candidate]
            before = -1
            for pair in range(pairs.starts[event], pairs.starts[event + 1]):
                a = pairs.attribute[pair]
                if a != before:
                    first[a] = pair
                    before = a
                last[a] = pair + 1
        start = programs.start[slots[candidate]]
        entry = programs.size[slots[candidate]] - 1
        depth = 0
        verdicts[candidate] = UNDECIDED
        for _ in range(_RUNS):
            at = entry
            while at >= 0:
                row = start + at
                kind = programs.kind[row]
                holds = False
                if kind == SPECIAL:
                    key = event * tests + programs.low[row]
                    holds = answers[np.searchsorted(asked, key)] == YES
                else:
                    a = programs.attribute[row]
                    low, high = programs.low[row], programs.high[row]
                    begin, end = first[a], last[a]
                    if end == 0:  # not bound
                        holds = kind == MISSES
                    elif kind in (VALUE, AGE):
                        pair = begin
                        if end - begin > 1:
                            if choice[a] < 0:
                                choice[a] = 0
                                chosen[depth] = a
                                depth += 1
                            pair += choice[a]
                        code = pairs.code[pair]
                        if kind == VALUE:
                            holds = low <= code <= high
                        elif moments[event] != NO_MOMENT:
                            holds = low <= code - moments[event] + ZERO <= high
                    elif kind in (ANY, NOT_ANY):
                        inside = False
                        for pair in range(begin, end):
                            inside |= low <= pairs.code[pair] <= high
                        holds = inside == (kind == ANY)
                at = programs.yes[row] if holds else programs.no[row]
            if at == -1:  # ACCEPT
                verdicts[candidate] = YES
                break
            while depth > 0:  # the next value of the last attribute that has one
                a = chosen[depth - 1]
                choice[a] += 1
                if choice[a] < last[a] - first[a]:
                    break
                choice[a] = -1
                depth -= 1
            if depth == 0:
                verdicts[candidate] = NO
                break
        for place in range(depth):
            choice[chosen[place]] = -1
    return verdicts


def run_in_python(
    program: Programs,
    values: Callable[[int], list[int]],
    holds_special: Callable[[int, Callable[[int], int]], bool],
    moment: int = NO_MOMENT,
) -> int:
    """The same for one program on one event, whose special tests depend on the chosen values.

    `values` gives the codes of an attribute. `holds_special` gets the number of a test and a
    function for the place of the value that is chosen for an attribute.
    """
    choice: dict[int, int] = {}  # in the order of choosing

    def place(attribute: int) -> int:
        return choice.setdefault(attribute, 0)

    for _ in range(_RUNS):
        at = len(program.kind) - 1
        while at >= 0:
            kind, a = int(program.kind[at]), int(program.attribute[at])
            low, high = int(program.low[at]), int(program.high[at])
            if kind == SPECIAL:
                holds = holds_special(low, place)
            elif not (codes := values(a)):
                holds = kind == MISSES
            elif kind == VALUE:
                holds = low <= codes[place(a)] <= high
            elif kind == AGE:
                age = codes[place(a)] - moment + ZERO
                holds = moment != NO_MOMENT and low <= age <= high
            else:
                inside = any(low <= code <= high for code in codes)
                holds = kind != MISSES and inside == (kind == ANY)
            at = int(program.yes[at] if holds else program.no[at])
        if at == -1:  # ACCEPT
            return YES
        while choice:
            a, index = choice.popitem()
            if index + 1 < len(values(a)):
                choice[a] = index + 1
                break
        if not choice:
            return NO
    return UNDECIDED
