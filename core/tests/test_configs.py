"""Configs show no secrets, whatever a plugin's author forgets: E1."""

from __future__ import annotations

from typing import ClassVar

from rich.pretty import pretty_repr

from entrepot.opening import ChatMemoryConfig, VectorStoreConfig


class Plain(VectorStoreConfig, frozen=True, kw_only=True):
    host: str = "localhost"
    password: str | None = None
    api_key: str | None = None


class Named(ChatMemoryConfig, frozen=True, kw_only=True):
    secrets: ClassVar[frozenset[str]] = frozenset({"pin"})

    pin: str | None = None


def test_a_config_shows_no_secret() -> None:
    # E1
    config = Plain(host="here", password="s3cret", api_key="k3y")
    for text in (repr(config), str(config), f"{config}", pretty_repr(config)):
        assert "here" in text
        assert "s3cret" not in text
        assert "k3y" not in text
        assert "password='***'" in text
    assert "password" not in repr(Plain())
    assert config.password == "s3cret"


def test_a_plugin_names_its_own_secrets() -> None:
    # E1
    assert "1234" not in repr(Named(pin="1234"))
    assert repr(Named(pin="1234", ttl=5.0)) == "Named(timeout=10.0, ttl=5.0, pin='***')"
