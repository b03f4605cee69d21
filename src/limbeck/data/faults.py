"""What goes wrong with a file that is read, as a sentence: one way for all readers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from limbeck.errors import DataNotFound, DataUnreadable, LimbeckError, ran_out

Wrong = Callable[[Exception], str | None]


@contextmanager
def sentences(path: Path, wrong: Wrong) -> Iterator[None]:
    """wrong: what is said behind the file's name of an error of a library; None where it is no fault of the file.

    Guarantee: no word of the library is shown unless `wrong` takes it: libraries quote the content that they could not read.
    """
    try:
        yield
    except FileNotFoundError:
        raise DataNotFound(f"There is no file {path}.") from None
    except LimbeckError:
        raise
    except Exception as error:  # on a damaged file libraries raise a dozen unrelated types
        words = None if ran_out(error) else wrong(error)
        if words is None:
            raise
        raise DataUnreadable(f"{path} {words}.") from None
