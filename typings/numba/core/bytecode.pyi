from collections.abc import Iterator

class FunctionIdentity:
    _unique_ids: Iterator[int]
