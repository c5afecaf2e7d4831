from collections.abc import Iterator

class error(Exception): ...  # noqa: N801, N818 - as the library calls it

class Options:
    log_errors: bool
    max_mem: int
    case_sensitive: bool

class _Match:
    def group(self, *groups: int | str) -> str | None: ...

class _Regexp:
    @property
    def groups(self) -> int: ...
    @property
    def programsize(self) -> int: ...
    def search(self, text: str) -> _Match | None: ...
    def finditer(self, text: str) -> Iterator[_Match]: ...

def compile(pattern: str, options: Options | None = None) -> _Regexp: ...
