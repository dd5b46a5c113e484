"""The hook that names the models."""

import subprocess
import sys

from entrepot.embeddings.plugin import entrepot_embedding_models
from entrepot.opening import embedding_model
from entrepot.plugins import load_attribute


def test_every_name_leads_to_its_model() -> None:
    made = {
        spec.name: load_attribute(spec.factory, spec.name).__name__ for spec in entrepot_embedding_models()
    }
    assert made == {
        "wordllama": "WordLlamaEmbeddingModel",
        "openai": "OpenAIEmbeddingModel",
        "hash": "HashEmbeddingModel",
    }
    assert all(spec.summary for spec in entrepot_embedding_models())


def test_the_text_after_the_colon_is_the_model() -> None:
    assert embedding_model("wordllama").name == "wordllama/l2_supercat-256"
    assert embedding_model("wordllama:l2_supercat-256", dimensions=64).dimensions == 64
    assert (
        embedding_model("openai:text-embedding-3-large", api_key="k").name == "openai/text-embedding-3-large"
    )


def test_naming_the_models_imports_none_of_them() -> None:
    program = (
        "import sys\n"
        "from entrepot.embeddings.plugin import entrepot_embedding_models\n"
        "entrepot_embedding_models()\n"
        "heavy = {'httpx', 'tenacity', 'wordllama', 'tokenizers', 'entrepot.embeddings.openai'}\n"
        "assert not heavy & set(sys.modules), heavy & set(sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
