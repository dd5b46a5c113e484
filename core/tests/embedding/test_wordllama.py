"""WordLlama from the files of its wheel: the vectors of WordLlama's own code, and no more."""

import asyncio
import importlib.util
import logging
import subprocess
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from entrepot.embedding import aembed_texts, embed_texts
from entrepot.embeddings.wordllama import WordLlamaEmbeddingModel
from entrepot.errors import ConfigurationError, DriverNotFoundError, EmbeddingError, UnembeddableTextError

if TYPE_CHECKING:
    from collections.abc import Iterator

TEXTS = [
    "Sofia is the capital of Bulgaria",
    "x",
    "  leading and trailing  ",
    "\n\t",
    "нещо на български",
    "保加利亚 😀",
    "<s> </s> [PAD]",
    "word " * 900,
]


@pytest.fixture(scope="module")
def model() -> WordLlamaEmbeddingModel:
    return WordLlamaEmbeddingModel()


@pytest.fixture(scope="module")
def original() -> "Iterator[Any]":
    """WordLlama itself. Importing it configures the root logger, which is put back."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    import wordllama

    yield wordllama.WordLlama.load(cache_dir=Path(wordllama.__file__).parent, disable_download=True)
    root.handlers[:] = handlers
    root.setLevel(level)


def test_vectors_are_those_of_wordllama(model: WordLlamaEmbeddingModel, original: Any) -> None:
    vectors = model.embed(TEXTS)
    assert vectors.shape == (len(TEXTS), 256) == (len(TEXTS), model.dimensions)
    assert vectors.dtype == np.float32
    assert np.allclose(vectors, original.embed(TEXTS), rtol=0, atol=1e-5)


def test_tokens_are_counted_as_wordllama_sees_them(model: WordLlamaEmbeddingModel, original: Any) -> None:
    expected = [sum(encoding.attention_mask) for encoding in original.tokenize([*TEXTS, ""])]
    assert model.token_counter.count([*TEXTS, ""]) == expected
    assert expected[0] == 8
    assert expected[-1] == 0
    assert model.token_counter.count([]) == []


def test_nothing_is_cut(model: WordLlamaEmbeddingModel) -> None:
    # a long text is the mean of all its tokens, also past any block that is pooled at once
    half = "alpha beta gamma " * 4000
    (whole,) = model.embed([half + "omega " * 30_000])
    (first,) = model.embed([half])
    assert model.token_counter.count([half])[0] > 8192
    assert not np.allclose(whole, first, atol=0.1)


def test_equal_texts_get_the_same_bits_in_any_batch(model: WordLlamaEmbeddingModel) -> None:
    # S1: identical vectors tie exactly
    alone = [model.embed([text])[0] for text in TEXTS]
    together = model.embed(TEXTS * 60)
    for row, vector in enumerate(together):
        assert np.array_equal(vector, alone[row % len(TEXTS)])


def test_an_empty_text_is_refused_by_name(model: WordLlamaEmbeddingModel) -> None:
    # D9: no zero vectors
    with pytest.raises(UnembeddableTextError, match="document 'b': an empty text has no tokens") as caught:
        embed_texts(model, ["a", ""], labels=["document 'a'", "document 'b'"])
    assert caught.value.index == 1
    with pytest.raises(UnembeddableTextError) as caught:
        model.embed(["a"] * 300 + [""])
    assert caught.value.index == 300


def test_a_lone_surrogate_is_refused(model: WordLlamaEmbeddingModel) -> None:
    # D4
    with pytest.raises(EmbeddingError, match="well-formed"):
        model.embed(["a\ud800"])


def test_no_texts_make_no_vectors(model: WordLlamaEmbeddingModel) -> None:
    assert model.embed([]).shape == (0, 256)


def test_threads_share_the_model(model: WordLlamaEmbeddingModel) -> None:
    # E5; the tokenizer holds no state that a call changes
    expected = model.embed(TEXTS)
    wrong: list[int] = []
    start = threading.Barrier(6)

    def work(number: int) -> None:
        start.wait(10)
        for _ in range(5):
            counts = model.token_counter.count(TEXTS[number:])
            if not np.array_equal(model.embed(TEXTS[number:]), expected[number:]) or 0 in counts:
                wrong.append(number)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert wrong == []


async def test_async_answers_like_sync(model: WordLlamaEmbeddingModel) -> None:
    # E3
    results = await asyncio.gather(*(aembed_texts(model, TEXTS) for _ in range(3)))
    for result in results:
        assert np.array_equal(result, model.embed(TEXTS))


def test_models_share_their_weights(model: WordLlamaEmbeddingModel) -> None:
    other = WordLlamaEmbeddingModel()
    assert other._weights is model._weights  # pyright: ignore[reportPrivateUsage]


def test_leading_components_can_be_kept(model: WordLlamaEmbeddingModel) -> None:
    short = WordLlamaEmbeddingModel(dimensions=64)
    assert short.dimensions == 64
    assert np.array_equal(short.embed(TEXTS), model.embed(TEXTS)[:, :64])


def test_the_name_says_what_defines_the_space(model: WordLlamaEmbeddingModel) -> None:
    # D5
    assert model.name == "wordllama/l2_supercat-256"
    assert WordLlamaEmbeddingModel("l2_supercat-256").name == model.name
    assert WordLlamaEmbeddingModel(dimensions=64).name == "wordllama/l2_supercat-256:64"
    assert repr(model) == "WordLlamaEmbeddingModel(name='wordllama/l2_supercat-256', dimensions=256)"


@pytest.mark.parametrize(
    "name", ["l2_supercat", "l2_supercat-0", "../l2_supercat-256", "l2-supercat-256", ""]
)
def test_a_name_that_is_none_is_refused(name: str) -> None:
    with pytest.raises(ConfigurationError, match="names no WordLlama model"):
        WordLlamaEmbeddingModel(name)


@pytest.mark.parametrize("dimensions", [0, 257, -1, "64", 64.0])
def test_dimensions_beyond_the_weights_are_refused(dimensions: Any) -> None:
    with pytest.raises(ConfigurationError, match="must be 1 to 256"):
        WordLlamaEmbeddingModel(dimensions=dimensions)


def test_missing_weights_are_not_downloaded(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"l3_supercat_512\.safetensors") as caught:
        WordLlamaEmbeddingModel("l3_supercat-512", cache_dir=tmp_path)
    assert "nothing is downloaded" in caught.value.hint


def test_weights_in_the_cache_folder_are_found(tmp_path: Path) -> None:
    from safetensors.numpy import save_file  # pyright: ignore[reportUnknownVariableType]

    spec = importlib.util.find_spec("wordllama")
    assert spec is not None
    assert spec.origin is not None
    tokenizer = Path(spec.origin).parent / "tokenizers" / "l2_supercat_tokenizer_config.json"
    (tmp_path / "weights").mkdir()
    (tmp_path / "tokenizers").mkdir()
    (tmp_path / "tokenizers" / "own_tokenizer_config.json").symlink_to(tokenizer)
    save_file(
        {"embedding.weight": np.eye(32_000, 4, dtype=np.float16)}, tmp_path / "weights" / "own_4.safetensors"
    )
    own = WordLlamaEmbeddingModel("own-4", cache_dir=tmp_path)
    assert own.embed(["x"]).tolist() == [[0.0, 0.0, 0.0, 0.0]]  # no token of it is among the first four
    (tmp_path / "weights" / "own_8.safetensors").write_bytes(b"no weights")
    with pytest.raises(EmbeddingError, match=r"own_8\.safetensors"):
        WordLlamaEmbeddingModel("own-8", cache_dir=tmp_path)


def test_a_missing_extra_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    # E2
    find = importlib.util.find_spec

    def without(name: str) -> Any:
        return None if name == "tokenizers" else find(name)

    monkeypatch.setattr(importlib.util, "find_spec", without)
    with pytest.raises(DriverNotFoundError, match="needs tokenizers") as caught:
        WordLlamaEmbeddingModel()
    assert caught.value.hint == 'pip install "entrepot[wordllama]"'


def test_the_package_is_not_imported_and_the_root_logger_stays_as_it_was() -> None:
    program = (
        "import logging, sys\n"
        "from entrepot.embeddings.wordllama import WordLlamaEmbeddingModel\n"
        "assert 'tokenizers' not in sys.modules\n"
        "WordLlamaEmbeddingModel().embed(['a'])\n"
        "assert 'wordllama' not in sys.modules and 'requests' not in sys.modules\n"
        "assert logging.getLogger().handlers == []\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
