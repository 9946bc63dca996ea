"""What the tests of readers share."""

from __future__ import annotations

from pathlib import Path

import pytest

from sparsecast.errors import InputError, MatrixFileError
from sparsecast.matrices.reading import load


@pytest.fixture(scope="session")
def refusal():
    """Return the message with which a file is refused: of exactly that class, one line, naming the file."""

    def message(path: Path, kind: type[InputError] = MatrixFileError) -> str:
        with pytest.raises(InputError) as caught:
            load(path)
        assert caught.type is kind
        text = str(caught.value)
        assert "\n" not in text and path.name in text
        return text

    return message
