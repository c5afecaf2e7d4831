from pyarrow import ipc as ipc
from pyarrow import lib as lib
from pyarrow import types as types
from pyarrow.lib import *  # noqa: F403 - pyarrow re-exports nearly all of it

__version__: str
