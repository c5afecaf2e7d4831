from collections.abc import Mapping, Sequence
from typing import Any

from pyarrow.lib import DataType, Table

class ReadOptions:
    def __init__(
        self,
        *,
        use_threads: bool = ...,
        block_size: int | None = ...,
        skip_rows: int = ...,
        column_names: Sequence[str] | None = ...,
        autogenerate_column_names: bool = ...,
    ) -> None: ...

class ParseOptions:
    def __init__(
        self, delimiter: str | None = ..., *, quote_char: str | bool = ..., **options: Any
    ) -> None: ...

class ConvertOptions:
    def __init__(
        self,
        *,
        column_types: Mapping[str, DataType] | None = ...,
        null_values: Sequence[str] | None = ...,
        include_columns: Sequence[str] | None = ...,
        **options: Any,
    ) -> None: ...

class WriteOptions:
    def __init__(
        self, *, include_header: bool = ..., batch_size: int = ..., delimiter: str = ...
    ) -> None: ...

class CSVWriter:
    def __init__(
        self, sink: Any, schema: Any, write_options: WriteOptions | None = ...
    ) -> None: ...
    def write_table(self, table: Table) -> None: ...
    def close(self) -> None: ...

def read_csv(
    input_file: Any,
    read_options: ReadOptions | None = ...,
    parse_options: ParseOptions | None = ...,
    convert_options: ConvertOptions | None = ...,
) -> Table: ...
def write_csv(data: Any, output_file: Any, write_options: WriteOptions | None = ...) -> None: ...
