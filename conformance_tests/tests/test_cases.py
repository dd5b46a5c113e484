"""The packaged cases can be found and read."""

from __future__ import annotations

import pytest

from entrepot_conformance import case_files, load_cases


def test_there_are_cases_and_each_file_is_json() -> None:
    names = case_files()
    assert names
    for name in names:
        assert load_cases(name)


def test_an_unknown_file_is_not_found() -> None:
    with pytest.raises(FileNotFoundError):
        load_cases("no-such-cases")
