"""`entrepot rag`: conversations in the terminal, by the distribution entrepot-rag."""

import os
import sys
from contextlib import ExitStack
from importlib import import_module
from typing import Annotated, Any

import typer

from entrepot.cli.output import remark, visible
from entrepot.errors import EntrepotError, PluginNotFoundError

app = typer.Typer(no_args_is_help=True, help="Chat with a model, remembered in any memory.")
DEFAULT_MODEL = "gpt-5-mini"


@app.command("chat")
def chat(
    *,
    memory: Annotated[
        str,
        typer.Option("--memory", metavar="URL", help="Where the conversation is kept", show_default=False),
    ],
    conversation: Annotated[
        str, typer.Option("--conversation", metavar="ID", help="Which conversation to go on with")
    ] = "terminal",
    model: Annotated[
        str,
        typer.Option(
            "--model", metavar="NAME", help="The model, where OPENAI_BASE_URL or OPENAI_API_KEY is set"
        ),
    ] = DEFAULT_MODEL,
    system: Annotated[
        str | None, typer.Option("--system", metavar="TEXT", help="Instructions to the model")
    ] = None,
) -> None:
    """Hold a conversation: a line is what you say, an empty line or the end of input ends it.

    Without OPENAI_BASE_URL and OPENAI_API_KEY a scripted model answers, which repeats what it hears. The next start goes
    on where this one ended.
    """
    from entrepot.opening import open_chat_memory

    rag = _rag()
    real = bool(os.environ.get("OPENAI_BASE_URL") or os.environ.get("OPENAI_API_KEY"))
    asked = (
        rag.OpenAIChatModel(model)
        if real
        else rag.ScriptedChatModel(import_module("entrepot_rag.models.scripted").echo)
    )
    with ExitStack() as stack:
        repository = stack.enter_context(open_chat_memory(memory))
        if real:
            stack.enter_context(asked)
        client = rag.ChatClient(asked, system=system, advisors=[rag.MessageChatMemoryAdvisor(repository)])
        kept = len(repository.messages(conversation, last=1000))
        remark(f"{asked.name}, conversation {conversation!r}: {_told(kept)}")
        _converse(client, conversation)


def _told(kept: int) -> str:
    if not kept:
        return "nothing said before"
    return f"{kept} messages before" if kept < 1000 else "a long conversation before"  # noqa: PLR2004 - as asked for


def _converse(client: Any, conversation: str) -> None:
    while True:
        if sys.stdin.isatty():
            sys.stderr.write("> ")
            sys.stderr.flush()
        line = sys.stdin.readline()
        said = line.strip()
        if not said:
            return
        try:
            with client.prompt(said).conversation(conversation).stream() as stream:
                for text in stream.texts():
                    sys.stdout.write(_shown(text))
                    sys.stdout.flush()
        except EntrepotError as error:
            if not error.retryable:
                raise
            remark(f"{error} (nothing of this turn was kept; say it again)")
        sys.stdout.write("\n")
        sys.stdout.flush()


def _shown(text: str) -> str:
    """Return a text without characters that would steer the terminal; lines stay."""
    return "".join(one if one in "\n\t" else visible(one) for one in text)


def _rag() -> Any:
    """Import the RAG layer, which the core does not depend on."""
    try:
        return import_module("entrepot_rag")
    except ModuleNotFoundError as error:
        if error.name != "entrepot_rag":
            raise
        msg = "the RAG layer is not installed"
        raise PluginNotFoundError(msg, hint='pip install "entrepot-rag[openai]"') from error
