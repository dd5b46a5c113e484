"""The embedding models of the core, named for `embedding="..."`. Imports none of them."""

from __future__ import annotations

from entrepot.plugins import EmbeddingModelSpec, hookimpl


@hookimpl
def entrepot_embedding_models() -> list[EmbeddingModelSpec]:
    """Return the models that come with entrepot."""
    return [
        EmbeddingModelSpec(
            name="wordllama",
            factory="entrepot.embeddings.wordllama:WordLlamaEmbeddingModel",
            summary="small local embeddings, no network; extra: wordllama",
        ),
        EmbeddingModelSpec(
            name="openai",
            factory="entrepot.embeddings.openai:OpenAIEmbeddingModel",
            summary="any server with OpenAI's embeddings interface; extra: openai",
        ),
        EmbeddingModelSpec(
            name="hash",
            factory="entrepot.embeddings.hashing:HashEmbeddingModel",
            summary="hashed words without semantics, for tests and examples",
        ),
    ]
