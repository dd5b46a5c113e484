"""`entrepot plugins`: what is installed, what is broken and why."""

from entrepot.cli.options import AsJson
from entrepot.cli.output import print_json, print_table


def plugins(*, as_json: AsJson = False) -> None:
    """List the plugins that are installed; broken ones with the reason."""
    from msgspec.structs import asdict

    from entrepot.plugins import plugin_manager

    found = plugin_manager().plugins()
    if as_json:
        print_json({"plugins": [{**asdict(plugin), "provides": list(plugin.provides)} for plugin in found]})
        return
    rows: list[tuple[str, str, str, str]] = []
    for plugin in found:
        if plugin.error is not None:
            state = f"broken: {plugin.error}"
        elif plugin.blocked:
            state = "blocked by ENTREPOT_PLUGINS_BLOCK"
        else:
            state = plugin.summary
        rows.append((plugin.name, ", ".join(plugin.provides), plugin.distribution, state))
    print_table(("name", "provides", "distribution", "summary"), rows)
