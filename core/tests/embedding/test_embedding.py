"""What stores rely on when they call a model: checks, batches, errors with names, async."""

import asyncio
import contextvars
import threading
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from entrepot.embedding import (
    DimensionProbe,
    EmbeddingModel,
    EstimatingTokenCounter,
    FunctionEmbeddingModel,
    TokenCountBatchingStrategy,
    aembed_texts,
    batching_for,
    check_embeddings,
    embed_texts,
    model_dimensions,
    model_name,
    token_counter_of,
)
from entrepot.errors import (
    ArgumentTypeError,
    ConfigurationError,
    EmbeddingError,
    SizeLimitError,
    UnembeddableTextError,
    UnreachableError,
)
from entrepot.opening import embedding_model


def lengths(texts: Sequence[str]) -> list[list[float]]:
    """Embed a text as its length and its number of spaces."""
    return [[float(len(text)), float(text.count(" "))] for text in texts]


class Recorder:
    """A model that remembers its calls."""

    def __init__(self, dimensions: int = 2) -> None:
        self.name = "recorder"
        self.dimensions = dimensions
        self.calls: list[list[str]] = []

    def embed(self, texts: Sequence[str]) -> "np.ndarray[Any, np.dtype[np.float32]]":
        self.calls.append(list(texts))
        return np.asarray(lengths(texts), dtype=np.float32)


# --- check_embeddings --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "vectors",
    [
        [[1, 2], [3, 4]],
        [[1.0, 2.0], [3.0, 4.0]],
        ([1.0, 2.0], np.array([3.0, 4.0])),
        np.array([[1, 2], [3, 4]], dtype=np.float64),
        np.array([[1, 3], [2, 4]], dtype=np.float32).T,
        np.array([[1, 2], [3, 4]], dtype=">f8"),
        np.array([[1, 2], [3, 4]], dtype=np.uint8),
    ],
)
def test_any_matrix_of_numbers_becomes_contiguous_float32(vectors: Any) -> None:
    # D9
    result = check_embeddings(vectors, 2, 2, model="m")
    assert result.dtype == np.float32
    assert result.flags.c_contiguous
    assert result.tolist() == [[1.0, 2.0], [3.0, 4.0]]


def test_a_right_array_is_not_copied() -> None:
    vectors = np.ones((2, 3), dtype=np.float32)
    assert check_embeddings(vectors, 2, None, model="m") is vectors


@pytest.mark.parametrize(
    ("vectors", "says"),
    [
        ([[1.0, 2.0]], r"shape \(1, 2\), expected \(2, 2\)"),
        ([1.0, 2.0], r"shape \(2,\), expected \(2, 2\)"),
        (np.ones((2, 2, 2)), r"shape \(2, 2, 2\)"),
        (np.ones((2, 0)), r"shape \(2, 0\)"),
        ([[1.0, 2.0, 3.0], [1.0, 2.0, 3.0]], "length 3, its dimensions are 2"),
        ([[1.0], [1.0, 2.0]], "rows of different lengths"),
        ([[1.0, 2.0], [float("nan"), 1.0]], "nan in row 1 of 2"),
        ([[float("inf"), 2.0], [1.0, 1.0]], "inf in row 0 of 2"),
        ([[1e39, 2.0], [1.0, 1.0]], r"1e\+39 in row 0 of 2"),
        ([["1", "2"], ["3", "4"]], "dtype <U1"),
        ([[True, False], [True, False]], "dtype bool"),
        ([[1j, 2], [3, 4]], "dtype complex128"),
        (None, "NoneType that holds no numbers"),
        ({"data": 1}, "dict that holds no numbers"),
    ],
)
def test_wrong_answers_are_refused_and_described(vectors: Any, says: str) -> None:
    # D9
    with pytest.raises(EmbeddingError, match=f"'some-model' returned .*{says}"):
        check_embeddings(vectors, 2, 2, model="some-model")


def test_no_texts_make_an_empty_matrix() -> None:
    assert check_embeddings([], 0, 5, model="m").shape == (0, 5)
    with pytest.raises(EmbeddingError, match="shape"):
        check_embeddings([[1.0]], 0, 1, model="m")


def test_zero_vectors_pass_here() -> None:
    # D9: what they mean depends on the metric
    assert check_embeddings([[0.0, 0.0]], 1, 2, model="m").tolist() == [[0.0, 0.0]]


# --- embed_texts -------------------------------------------------------------------------------------------


def test_texts_keep_their_order_across_batches() -> None:
    model = Recorder()
    texts = [f"{'x' * n} y" for n in (3, 1, 2, 2, 5)]
    vectors = embed_texts(model, texts, batching=TokenCountBatchingStrategy(max_texts=2))
    assert vectors.tolist() == lengths(texts)
    assert model.calls == [texts[:2], texts[2:4], texts[4:]]


def test_equal_texts_are_each_embedded() -> None:
    model = Recorder()
    assert embed_texts(model, ["a", "a"]).shape == (2, 2)
    assert model.calls == [["a", "a"]]


def test_nothing_is_sent_for_no_texts() -> None:
    model = Recorder()
    assert embed_texts(model, []).shape == (0, 0)
    assert embed_texts(model, [], dimensions=7).shape == (0, 7)
    assert model.calls == []


def test_what_is_counted_is_what_is_sent() -> None:
    counted: list[str] = []

    class Counter:
        def count(self, texts: Sequence[str]) -> list[int]:
            counted.extend(texts)
            return [1] * len(texts)

    model = Recorder()
    embed_texts(model, ["a", "b "], batching=TokenCountBatchingStrategy(counter=Counter()))
    assert counted == [text for call in model.calls for text in call] == ["a", "b "]


def test_a_bare_string_is_no_list_of_texts() -> None:
    with pytest.raises(ArgumentTypeError, match="bare string"):
        embed_texts(Recorder(), "abc")


def test_what_is_no_string_is_refused_by_its_label() -> None:
    model = Recorder()
    texts: list[Any] = ["a", None]
    with pytest.raises(ArgumentTypeError, match="document 'b': a text is a str, not NoneType"):
        embed_texts(model, texts, labels=["document 'a'", "document 'b'"])
    assert model.calls == []


def test_too_long_a_text_is_refused_before_the_first_call() -> None:
    # D6
    model = Recorder()
    strategy = TokenCountBatchingStrategy(max_tokens=10, max_texts=1)
    with pytest.raises(SizeLimitError, match="document 'b'"):
        embed_texts(model, ["a", "b" * 99], labels=["document 'a'", "document 'b'"], batching=strategy)
    assert model.calls == []


def test_another_length_than_the_collection_has_is_refused() -> None:
    with pytest.raises(EmbeddingError, match="length 2"):
        embed_texts(Recorder(), ["a"], dimensions=3)


def test_a_model_that_changes_its_length_between_batches_is_refused() -> None:
    answers = iter([[[1.0, 2.0]], [[1.0, 2.0, 3.0]]])
    model = FunctionEmbeddingModel(lambda _: next(answers), "fickle")
    with pytest.raises(EmbeddingError, match="length 3, its dimensions are 2"):
        embed_texts(model, ["a", "b"], batching=TokenCountBatchingStrategy(max_texts=1))


def test_a_foreign_exception_is_the_cause_and_not_the_message() -> None:
    # E1
    def fail(_: Sequence[str]) -> list[list[float]]:
        raise RuntimeError("key sk-secret is wrong")

    model = FunctionEmbeddingModel(fail, "broken", 2)
    with pytest.raises(EmbeddingError, match="'broken' failed: RuntimeError") as caught:
        embed_texts(model, ["a"])
    assert isinstance(caught.value.__cause__, RuntimeError)
    assert "sk-secret" not in str(caught.value)


def test_errors_of_entrepot_pass_as_they_are() -> None:
    error = UnreachableError("no connection")

    def fail(_: Sequence[str]) -> list[list[float]]:
        raise error

    with pytest.raises(UnreachableError) as caught:
        embed_texts(FunctionEmbeddingModel(fail, "far", 2), ["a"])
    assert caught.value is error


def refuse_empty(texts: Sequence[str]) -> list[list[float]]:
    for index, text in enumerate(texts):
        if not text:
            raise UnembeddableTextError("an empty text has no vector", index=index, hint="give it a text")
    return lengths(texts)


async def test_a_text_refused_by_the_model_is_named_across_batches() -> None:
    model = FunctionEmbeddingModel(refuse_empty, "picky", 2)
    strategy = TokenCountBatchingStrategy(max_texts=2)
    labels = [f"document {n!r}" for n in "abcd"]
    with pytest.raises(UnembeddableTextError, match=r"^document 'd': an empty text has no vector") as caught:
        embed_texts(model, ["x", "x", "x", ""], labels=labels, batching=strategy)
    assert caught.value.index == 3
    assert caught.value.hint == "give it a text"
    assert isinstance(caught.value, ValueError)
    with pytest.raises(UnembeddableTextError, match=r"^text 3: "):
        await aembed_texts(model, ["x", "x", "x", ""], batching=strategy)


@pytest.mark.parametrize(
    "ranges",
    [
        [range(1)],
        [range(1, 2), range(1)],
        [range(3)],
        [range(2), range(1, 2)],
        [range(0, 2, 2)],
        [],
    ],
)
def test_a_strategy_that_loses_texts_is_refused(ranges: list[range]) -> None:
    class Strategy:
        def batches(self, texts: Sequence[str], labels: Sequence[str] | None = None) -> list[range]:
            assert (list(texts), labels) == (["a", "b"], None)
            return ranges

    model = Recorder()
    with pytest.raises(ConfigurationError, match="cover all 2 texts"):
        embed_texts(model, ["a", "b"], batching=Strategy())
    assert model.calls == []


# --- async -------------------------------------------------------------------------------------------------


async def test_async_answers_like_sync() -> None:
    # E3
    model = Recorder()
    texts = ["a b", "c", "d " * 3000]
    strategy = TokenCountBatchingStrategy(max_texts=2)
    assert (await aembed_texts(model, texts, batching=strategy)).tolist() == lengths(texts)
    assert (await aembed_texts(model, [], dimensions=3)).shape == (0, 3)
    with pytest.raises(ArgumentTypeError):
        await aembed_texts(model, "abc")


async def test_a_native_async_form_is_preferred() -> None:
    # E3
    used: list[str] = []

    async def native(texts: Sequence[str]) -> list[list[float]]:
        used.append("async")
        return lengths(texts)

    model = FunctionEmbeddingModel(lengths, "both", 2, aembed=native)
    assert (await aembed_texts(model, ["a"])).tolist() == lengths(["a"])
    assert used == ["async"]
    assert model.embed(["a"]).tolist() == lengths(["a"])
    assert used == ["async"]


async def test_a_sync_model_runs_on_another_thread_with_the_context_of_the_caller() -> None:
    # E3, O2
    request = contextvars.ContextVar("request", default="none")
    seen: list[tuple[str, bool]] = []

    class Model(Recorder):
        def embed(self, texts: Sequence[str]) -> "np.ndarray[Any, np.dtype[np.float32]]":
            seen.append((request.get(), threading.current_thread() is threading.main_thread()))
            return super().embed(texts)

    request.set("mine")
    await aembed_texts(Model(), ["a"])
    assert seen == [("mine", False)]


async def test_foreign_exceptions_of_async_models_are_causes_too() -> None:
    # E1
    async def fail(_: Sequence[str]) -> list[list[float]]:
        raise OSError("no route")

    with pytest.raises(EmbeddingError, match="OSError") as caught:
        await aembed_texts(FunctionEmbeddingModel(lengths, "m", 2, aembed=fail), ["a"])
    assert isinstance(caught.value.__cause__, OSError)


# --- dimensions --------------------------------------------------------------------------------------------


def test_the_length_is_asked_for_once() -> None:
    calls: list[list[str]] = []

    def embed(texts: Sequence[str]) -> list[list[float]]:
        calls.append(list(texts))
        return lengths(texts)

    model = FunctionEmbeddingModel(embed, "unknown")
    assert [model.dimensions, model.dimensions] == [2, 2]
    assert len(calls) == 1


def test_the_length_is_learnt_from_any_answer() -> None:
    calls = 0

    def embed(texts: Sequence[str]) -> list[list[float]]:
        nonlocal calls
        calls += 1
        return lengths(texts)

    model = FunctionEmbeddingModel(embed, "unknown")
    model.embed(["a"])
    assert (model.dimensions, calls) == (2, 1)


def test_nothing_is_learnt_from_no_vectors() -> None:
    model = FunctionEmbeddingModel(lambda texts: [[1.0]] * len(texts), "one")
    assert model.embed([]).shape == (0, 0)
    assert model.dimensions == 1
    assert FunctionEmbeddingModel(lengths, "given", 1).dimensions == 1


async def test_many_threads_and_tasks_ask_with_one_call() -> None:
    calls = 0
    asked = threading.Barrier(5)
    both = threading.Event()

    def embed(texts: Sequence[str]) -> list[list[float]]:
        nonlocal calls
        calls += 1
        assert both.wait(10)
        return lengths(texts)

    probe = DimensionProbe(embed, model="slow")
    found: list[int] = []

    def ask() -> None:
        asked.wait(10)
        found.append(probe.get())

    threads = [threading.Thread(target=ask) for _ in range(5)]
    for thread in threads:
        thread.start()
    tasks = [asyncio.create_task(probe.aget()) for _ in range(5)]
    await asyncio.sleep(0)
    both.set()
    assert await asyncio.gather(*tasks) == [2] * 5
    for thread in threads:
        await asyncio.to_thread(thread.join, 10)
    assert found == [2] * 5
    assert calls == 1


def test_a_probe_that_failed_tries_again() -> None:
    answers: list[Any] = [OSError("down"), [[1.0, 2.0, 3.0]]]

    def embed(_: Sequence[str]) -> Any:
        answer = answers.pop(0)
        if isinstance(answer, OSError):
            raise answer
        return answer

    probe = DimensionProbe(embed, model="flaky")
    with pytest.raises(EmbeddingError, match="'flaky' failed: OSError"):
        probe.get()
    assert probe.known is None
    assert probe.get() == probe.known == 3


# --- what a model may add ----------------------------------------------------------------------------------


def test_a_model_without_limit_takes_any_text() -> None:
    # D8
    model = Recorder()
    long = "w " * 100_000
    assert embed_texts(model, ["a", long, "b"]).shape == (3, 2)
    assert model.calls == [["a"], [long], ["b"]]


def test_a_model_with_a_limit_is_batched_by_its_own_counter() -> None:
    class Counter:
        def count(self, texts: Sequence[str]) -> list[int]:
            return [len(text) for text in texts]

    counter = Counter()
    model = FunctionEmbeddingModel(lengths, "m", 2, token_counter=counter, max_tokens=100)
    strategy = batching_for(model)
    assert (strategy.limit, strategy.counter, strategy.oversize) == (90, counter, "refuse")
    assert token_counter_of(model) is counter
    with pytest.raises(SizeLimitError):
        embed_texts(model, ["x" * 91])


def test_a_model_without_counter_is_estimated() -> None:
    assert isinstance(token_counter_of(Recorder()), EstimatingTokenCounter)


def test_a_function_model_says_what_it_is() -> None:
    model: EmbeddingModel = FunctionEmbeddingModel(lengths, "mine-v2", 2)
    assert repr(model) == "FunctionEmbeddingModel(name='mine-v2', dimensions=2)"
    assert repr(FunctionEmbeddingModel(lengths, "m")) == "FunctionEmbeddingModel(name='m', dimensions=None)"
    with pytest.raises(ConfigurationError):
        FunctionEmbeddingModel(lengths, "m", 0)


# --- what a model says of itself ---------------------------------------------------------------------------


class Liar(Recorder):
    """A model whose attribute answers wrongly or raises."""

    def __init__(self, attribute: str, answer: object) -> None:
        super().__init__()
        self.__dict__.pop(attribute)
        self.lies = {attribute: answer}

    def __getattr__(self, name: str) -> Any:
        answer = self.__dict__.get("lies", {}).get(name, AttributeError(name))
        if isinstance(answer, Exception):
            raise answer
        return answer


@pytest.mark.parametrize("answer", [RuntimeError("key=s3cret"), 0, -1, "3", 2.5, None, True])
def test_dimensions_that_are_none_are_an_embedding_error(answer: object) -> None:  # E1
    with pytest.raises(EmbeddingError, match="recorder") as caught:
        model_dimensions(Liar("dimensions", answer))
    assert "s3cret" not in str(caught.value)
    assert caught.value.__cause__ is (answer if isinstance(answer, Exception) else None)


def test_dimensions_of_numpy_are_an_int() -> None:
    assert type(model_dimensions(Liar("dimensions", np.int64(2)))) is int
    assert type(FunctionEmbeddingModel(lengths, "m", np.int64(2)).dimensions) is int  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize("answer", [RuntimeError("key=s3cret"), "", 5, None, "a\0"])
async def test_a_name_that_is_none_is_an_embedding_error(answer: object) -> None:  # E1
    model = Liar("name", answer)
    with pytest.raises(EmbeddingError, match="Liar") as caught:
        model_name(model)
    assert "s3cret" not in str(caught.value)
    with pytest.raises(EmbeddingError):
        embed_texts(model, ["a"])
    with pytest.raises(EmbeddingError):
        await aembed_texts(model, ["a"])
    with pytest.raises(EmbeddingError):
        embedding_model(model)


def test_a_counter_that_fails_is_the_cause() -> None:  # E1
    class Counter:
        def count(self, texts: Sequence[str]) -> list[int]:
            raise RuntimeError(len(texts))

    model = FunctionEmbeddingModel(lengths, "m", 2, token_counter=Counter(), max_tokens=10)
    with pytest.raises(EmbeddingError, match="'m' could not count tokens: RuntimeError"):
        embed_texts(model, ["a"])


@pytest.mark.parametrize(
    "arguments",
    [
        (lengths, "m", "3"),
        (lengths, "m", 2.0),
        (lengths, "m", True),
        (lengths, 5),
        (lengths, ""),
        (None, "m"),
    ],
)
def test_a_function_model_checks_its_arguments(arguments: Any) -> None:
    with pytest.raises(ConfigurationError):
        FunctionEmbeddingModel(*arguments)


def test_a_model_that_cannot_be_made_is_an_embedding_error() -> None:  # E1
    with pytest.raises(EmbeddingError, match="hash") as caught:
        embedding_model("hash", no_such_option=1)
    assert isinstance(caught.value.__cause__, TypeError)
