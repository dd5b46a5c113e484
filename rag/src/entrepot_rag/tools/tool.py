"""A tool made of a function: its schema from annotations and docstring, its arguments checked by msgspec."""

from __future__ import annotations

import asyncio
import inspect
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, Final, TypeVar, cast, get_origin, get_type_hints, overload

import msgspec

from entrepot_rag.chat import ToolDefinition
from entrepot_rag.errors import ToolError
from entrepot_rag.typed import decoded, schema_of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from entrepot.messages import Message, ToolCall

R = TypeVar("R")

NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
"""Names that every server takes."""
_SECTION: Final = re.compile(r"^[A-Z][A-Za-z ]*:\s*$")
_ENTRY: Final = re.compile(r"^(\w+)(?:\s*\([^)]*\))?:\s*(.*)$")


@dataclass(frozen=True, kw_only=True)
class ToolContext:
    """What a tool may know of the turn that it is called in. A parameter of this type is filled in, and hidden.

    Attributes:
        call: The call, as the model wrote it.
        messages: What was said up to the call, the call included.
        conversation_id: Which conversation it is.
        values: The caller's, as given to the client's `context`.
    """

    call: ToolCall
    messages: Sequence[Message] = ()
    conversation_id: str | None = None
    values: Mapping[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True, kw_only=True)
class Tool:
    """A function that a model may call.

    Attributes:
        definition: What the model is told.
        function: What is called, sync or async.
        arguments: The type of the arguments together; None for a tool whose arguments are a dict as they come.
        context: The name of the parameter that takes the `ToolContext`, if there is one.
        return_direct: Whether the answer goes to the caller, and not back to the model. It does if all tools of a
            round say so.
        afunction: What async code calls instead of `function`, if that is not the same.
    """

    definition: ToolDefinition
    function: Callable[..., Any]
    arguments: type[msgspec.Struct] | None = None
    context: str | None = None
    return_direct: bool = False
    afunction: Callable[..., Awaitable[Any]] | None = None

    @property
    def name(self) -> str:
        """The tool's name."""
        return self.definition.name

    @property
    def is_async(self) -> bool:
        """Whether the function is async."""
        return inspect.iscoroutinefunction(self.function)

    def given(self, context: ToolContext) -> dict[str, Any]:
        """Return the function's arguments for a call, as keywords.

        Raises:
            ValueError: The model's arguments do not fit; the text says why, for the model to read.
        """
        text = context.call.arguments.strip() or "{}"
        if self.arguments is None:
            given: object = decoded(text, dict[str, Any])
            values = {"arguments": given}
        else:
            held = decoded(text, self.arguments)
            values = {name: getattr(held, name) for name in self.arguments.__struct_fields__}
        return {**values, self.context: context} if self.context is not None else values

    def run(self, context: ToolContext) -> str:
        """Call the function, and return its answer as text; an async one runs in an event loop of its own.

        Raises:
            ValueError: As `given`.
        """
        answer = self.function(**self.given(context))
        if inspect.isawaitable(answer):
            answer = asyncio.run(_awaited(answer))
        return told(answer)

    async def arun(self, context: ToolContext) -> str:
        """As `run`; a sync function runs in a thread."""
        given = self.given(context)
        if self.afunction is not None:
            return told(await self.afunction(**given))
        if self.is_async:
            return told(await self.function(**given))
        answer = await asyncio.to_thread(self.function, **given)
        return told((await answer) if inspect.isawaitable(answer) else answer)


async def _awaited(answer: Any) -> Any:
    return await answer


def told(answer: object) -> str:
    """Return what a tool answered as text: a str as it is, all else as JSON.

    Raises:
        TypeError: It has no JSON.
    """
    if isinstance(answer, str):
        return answer
    if hasattr(answer, "model_dump_json"):  # of pydantic
        return str(cast("Any", answer).model_dump_json())
    return msgspec.json.encode(answer).decode()


@overload
def tool(function: Callable[..., Any], /) -> Tool: ...


@overload
def tool(
    *, name: str | None = None, description: str | None = None, return_direct: bool = False
) -> Callable[[Callable[..., Any]], Tool]: ...


def tool(
    function: Callable[..., Any] | None = None,
    /,
    *,
    name: str | None = None,
    description: str | None = None,
    return_direct: bool = False,
) -> Tool | Callable[[Callable[..., Any]], Tool]:
    """Make a tool of a typed function; also as a decorator, with or without arguments.

    The schema comes from the annotations, the description from the docstring; its section ``Args:`` describes the
    parameters, where ``Annotated[int, msgspec.Meta(description=...)]`` does not. A parameter of type `ToolContext` is
    filled in and never shown to the model.

    Raises:
        ToolError: A parameter has no annotation or one that no JSON has, takes any number of arguments, or the name
            has other characters than letters, digits, ``_`` and ``-``, or more than 64.
    """
    if function is None:
        return lambda one: made(one, name=name, description=description, return_direct=return_direct)
    return made(function, name=name, description=description, return_direct=return_direct)


def made(
    function: Callable[..., Any],
    *,
    name: str | None = None,
    description: str | None = None,
    return_direct: bool = False,
) -> Tool:
    """As `tool`."""
    named = name or str(getattr(function, "__name__", ""))
    if not NAME.fullmatch(named):
        msg = f"{named!r} can be no tool's name"
        raise ToolError(msg, hint="letters, digits, _ and -, up to 64; give one as name=")
    about, parameters = _documented(inspect.getdoc(function) or "")
    context, fields = _fields(function, named, parameters)
    arguments = msgspec.defstruct(named, fields, kw_only=True, forbid_unknown_fields=True)
    try:
        schema = schema_of(arguments)
    except TypeError as error:
        msg = f"the tool {named!r} has a parameter that JSON cannot tell: {error}"
        raise ToolError(msg) from error
    return Tool(
        definition=ToolDefinition(name=named, description=description or about, parameters=schema),
        function=function,
        arguments=arguments,
        context=context,
        return_direct=return_direct,
    )


def _fields(
    function: Callable[..., Any], name: str, told: Mapping[str, str]
) -> tuple[str | None, list[tuple[str, Any] | tuple[str, Any, Any]]]:
    """Return the parameter for the context, and the others as fields of a struct."""
    try:
        hints = get_type_hints(function, include_extras=True)
    except (NameError, TypeError) as error:
        msg = f"the annotations of the tool {name!r} cannot be read: {error}"
        raise ToolError(msg, hint="import their types at run time, not only while type checking") from error
    context: str | None = None
    fields: list[tuple[str, Any] | tuple[str, Any, Any]] = []
    for key, parameter in inspect.signature(function).parameters.items():
        if parameter.kind in {parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD, parameter.POSITIONAL_ONLY}:
            msg = f"the tool {name!r} has the parameter {key!r}, which cannot be given by name"
            raise ToolError(msg, hint="give each parameter a name and a type")
        if key not in hints:
            msg = f"the parameter {key!r} of the tool {name!r} has no annotation"
            raise ToolError(msg, hint="the model's arguments are checked by it")
        kind = hints[key]
        if kind is ToolContext:
            context = key
            continue
        if key in told and not (get_origin(kind) is Annotated and any(map(_describes, kind.__metadata__))):
            kind = Annotated[kind, msgspec.Meta(description=told[key])]
        fields.append(
            (key, kind) if parameter.default is parameter.empty else (key, kind, _default(parameter.default))
        )
    return context, fields


def _describes(extra: object) -> bool:
    return isinstance(extra, msgspec.Meta) and extra.description is not None


def _default(value: object) -> Any:
    """Return a default as structs take it: those that change are made anew each time."""
    if isinstance(value, list | dict | set):
        made = cast("Any", value).copy
        return msgspec.field(default_factory=made)
    return value


def _documented(text: str) -> tuple[str, dict[str, str]]:
    """Return what a docstring says of the function, and of each parameter in its section ``Args:``."""
    about: list[str] = []
    parameters: dict[str, list[str]] = {}
    section, last = "", ""
    indent = 0
    for line in text.splitlines():
        stripped = line.strip()
        if _SECTION.match(stripped) and not line.startswith(" "):
            section, indent = stripped.rstrip(":"), 0
        elif not section:
            about.append(line)
        elif section in {"Args", "Arguments", "Parameters"} and stripped:
            depth = len(line) - len(line.lstrip())
            indent = indent or depth
            entry = _ENTRY.match(stripped) if depth == indent else None
            if entry is not None:
                last = entry[1]
                parameters[last] = [entry[2]]
            elif last:
                parameters[last].append(stripped)
    return "\n".join(about).strip(), {
        name: " ".join(filter(None, lines)) for name, lines in parameters.items()
    }
