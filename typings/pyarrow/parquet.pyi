from collections.abc import Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any, Self

from pyarrow.lib import RecordBatch, Schema, Table

class FileMetaData:
    @property
    def num_rows(self) -> int: ...
    @property
    def num_row_groups(self) -> int: ...
    @property
    def num_columns(self) -> int: ...
    @property
    def metadata(self) -> dict[bytes, bytes] | None: ...
    @property
    def schema(self) -> Any: ...
    def row_group(self, i: int) -> Any: ...

class ParquetFile:
    def __init__(
        self, source: Any, *, memory_map: bool = ..., buffer_size: int = ..., **options: Any
    ) -> None: ...
    @property
    def metadata(self) -> FileMetaData: ...
    @property
    def schema_arrow(self) -> Schema: ...
    @property
    def num_row_groups(self) -> int: ...
    def read(
        self,
        columns: Sequence[str] | None = ...,
        use_threads: bool = ...,
        use_pandas_metadata: bool = ...,
    ) -> Table: ...
    def iter_batches(
        self,
        batch_size: int = ...,
        row_groups: Sequence[int] | None = ...,
        columns: Sequence[str] | None = ...,
        use_threads: bool = ...,
    ) -> Iterator[RecordBatch]: ...
    def close(self, force: bool = ...) -> None: ...
    def __enter__(self) -> Self: ...
    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
        /,
    ) -> None: ...

class ParquetWriter:
    def __init__(
        self,
        where: Any,
        schema: Schema,
        *,
        compression: str | Mapping[str, str] = ...,
        use_dictionary: bool | Sequence[str] = ...,
        **options: Any,
    ) -> None: ...
    def write(
        self, table_or_batch: Table | RecordBatch, row_group_size: int | None = ...
    ) -> None: ...
    def write_table(self, table: Table, row_group_size: int | None = ...) -> None: ...
    def write_batch(self, batch: RecordBatch, row_group_size: int | None = ...) -> None: ...
    def close(self) -> None: ...
    def __enter__(self) -> Self: ...
    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
        /,
    ) -> None: ...

def read_table(
    source: Any,
    *,
    columns: Sequence[str] | None = ...,
    use_threads: bool = ...,
    schema: Schema | None = ...,
    read_dictionary: Sequence[str] | None = ...,
    memory_map: bool = ...,
    filters: Any = ...,
    **options: Any,
) -> Table: ...
def write_table(
    table: Table,
    where: Any,
    row_group_size: int | None = ...,
    *,
    compression: str | Mapping[str, str] = ...,
    use_dictionary: bool | Sequence[str] = ...,
    **options: Any,
) -> None: ...
def read_schema(where: Any, memory_map: bool = ...) -> Schema: ...
def read_metadata(where: Any, memory_map: bool = ...) -> FileMetaData: ...
def write_metadata(schema: Schema, where: Any, **more: Any) -> None: ...
