"""The model that hashes words."""

import hashlib

import numpy as np
import pytest

from entrepot.embedding import aembed_texts, embed_texts
from entrepot.embeddings.hashing import HashEmbeddingModel
from entrepot.errors import ConfigurationError


def test_vectors_are_unit_vectors_of_the_dimension() -> None:
    # D9
    vectors = embed_texts(HashEmbeddingModel(), ["one", "two words", "", " \n", "Ж 文 😀", "a " * 10_000])
    assert vectors.shape == (6, 64)
    assert np.allclose(np.linalg.norm(vectors.astype(np.float64), axis=1), 1.0, atol=1e-6)


def test_a_vector_follows_from_the_hash_of_its_word() -> None:
    words = np.frombuffer(
        hashlib.blake2b(b"sofia", salt=bytes(16)).digest()
        + hashlib.blake2b(b"sofia", salt=b"\1" + bytes(15)).digest(),
        dtype="<i2",
    )
    expected = 2.0 * words + 1.0
    expected /= np.linalg.norm(expected)
    assert np.allclose(HashEmbeddingModel().embed(["Sofia!"])[0], expected, atol=1e-7)


def test_equal_words_are_near_and_order_plays_no_part() -> None:
    a, b, c, d = HashEmbeddingModel(256).embed(
        ["red green blue", "blue red green", "red green grey", "quite else"]
    )
    assert np.array_equal(a, b)
    assert a @ c > 0.5
    assert abs(a @ d) < 0.3


def test_a_text_without_words_has_a_vector_of_its_own() -> None:
    empty, blank, word = HashEmbeddingModel().embed(["", "!?", "word"])
    assert np.array_equal(empty, blank)
    assert not np.array_equal(empty, word)


@pytest.mark.parametrize("dimensions", [2, 3, 31, 32, 33, 1000])
def test_any_dimension_from_two_on(dimensions: int) -> None:
    model = HashEmbeddingModel(dimensions)
    assert model.embed(["a"]).shape == (1, model.dimensions) == (1, dimensions)
    assert model.name == f"hash/blake2b-{dimensions}"


@pytest.mark.parametrize("dimensions", [1, 0, -4, "", "x", "1.5"])
def test_what_is_no_dimension_is_refused(dimensions: int | str) -> None:
    with pytest.raises(ConfigurationError):
        HashEmbeddingModel(dimensions)


async def test_async_answers_like_sync() -> None:
    # E3
    model = HashEmbeddingModel()
    assert np.array_equal(await aembed_texts(model, ["a b", "c"]), model.embed(["a b", "c"]))
