# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""The client against a real API server with RBAC."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest
import yaml
from aiohttp import web

from jupyter_pause.clock import SYSTEM_CLOCK
from jupyter_pause.cluster.access import Right
from jupyter_pause.cluster.client import EVERYWHERE, PAGE, TRIES, ClusterClient
from jupyter_pause.cluster.config import ClusterConfig
from jupyter_pause.cluster.errors import ClusterError
from jupyter_pause.cluster.resources import PODS, STATEFULSETS, WORKSPACES, Resource

from .apiserver import ApiServer
from .faulty import FaultyServer
from .grants import grant

CONFIG_MAPS = Resource("", "v1", "configmaps", "ConfigMap")
EXEC_API = "client.authentication.k8s.io/v1"
UNKNOWN = Resource("nobody.example.org", "v1", "things", "Thing")


@asynccontextmanager
async def client_of(
    server: ApiServer, namespace: str, folder: Path, *, token: str | None = None, **options: Any
) -> AsyncIterator[ClusterClient]:
    """As in a pod: host, authority and a token file."""
    file = folder / "token"
    file.write_text(token or server.admin_token)
    config = ClusterConfig(host=server.url, ca_file=Path(server.ca), namespace=namespace, token_file=file)
    client = ClusterClient(config, clock=SYSTEM_CLOCK, **options)
    try:
        yield client
    finally:
        await client.close()


def config_map(name: str, **data: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


async def failure(call: Any) -> ClusterError:
    with pytest.raises(ClusterError) as caught:
        await call
    return caught.value


async def test_calls_do_what_they_say(api_server: ApiServer, namespace: str, tmp_path: Path) -> None:
    async with client_of(api_server, namespace, tmp_path) as client:
        made = await client.create(CONFIG_MAPS, config_map("a", color="red"))
        assert made == await client.get(CONFIG_MAPS, "a")
        await client.patch(CONFIG_MAPS, "a", [{"op": "replace", "path": "/data/color", "value": "blue"}])
        await client.merge(CONFIG_MAPS, "a", {"data": {"size": "9", "color": None}})
        assert (await client.get(CONFIG_MAPS, "a", namespace))["data"] == {"size": "9"}
        await client.create(CONFIG_MAPS, config_map("b") | {"metadata": {"name": "b", "labels": {"keep": "no"}}})
        assert [one["metadata"]["name"] for one in (await client.list(CONFIG_MAPS)).items] == ["a", "b"]
        chosen = await client.list(CONFIG_MAPS, label_selector="keep=no")
        assert [one["metadata"]["name"] for one in chosen.items] == ["b"]
        await client.delete(CONFIG_MAPS, "b")
        named = await client.list(CONFIG_MAPS, field_selector="metadata.name=a")
        assert [one["metadata"]["name"] for one in named.items] == ["a"] and int(named.resource_version) > 0
        assert client.requests["list", "configmaps"] == 3 and client.requests["get", "configmaps"] == 2


async def test_a_list_longer_than_a_page_is_whole(api_server: ApiServer, namespace: str, tmp_path: Path) -> None:
    count = PAGE * 2 + 5
    api_server.apply([config_map(f"c{number}") for number in range(count)], namespace)
    async with client_of(api_server, namespace, tmp_path) as client:
        names = {one["metadata"]["name"] for one in (await client.list(CONFIG_MAPS)).items}
        assert names == {f"c{number}" for number in range(count)} and client.requests["list", "configmaps"] == 3
        everywhere = (await client.list(CONFIG_MAPS, EVERYWHERE, field_selector="metadata.name=c7")).items
        assert namespace in {one["metadata"]["namespace"] for one in everywhere}


async def test_errors_name_what_was_asked(api_server: ApiServer, namespace: str, tmp_path: Path) -> None:
    async with client_of(api_server, namespace, tmp_path) as client:
        gone = await failure(client.get(CONFIG_MAPS, "nobody"))
        assert (gone.code, gone.params["missing"], gone.params["name"]) == ("cluster_not_found", "object", "nobody")
        unknown = await failure(client.list(UNKNOWN))
        assert (unknown.code, unknown.params["missing"]) == ("cluster_not_found", "type")
        assert unknown.params["resource"] == "things.nobody.example.org"
        await client.create(CONFIG_MAPS, config_map("a"))
        taken = await failure(client.create(CONFIG_MAPS, config_map("a")))
        assert taken.code == "cluster_conflict" and taken.params["exists"] is True
        refused = await failure(client.create(CONFIG_MAPS, config_map("Not A Name")))
        assert refused.code == "cluster_invalid" and "Not A Name" in refused.params["message"]
        for name in ("", ".", ".."):  # never the collection
            assert (await failure(client.delete(CONFIG_MAPS, name))).code == "cluster_invalid"
        assert (await client.get(CONFIG_MAPS, "a"))["metadata"]["name"] == "a"
        schema = await failure(client.create(WORKSPACES, {"metadata": {"name": "w"}, "spec": {"paused": "yes"}}))
        assert schema.code == "cluster_invalid"


async def test_S47_a_refusal_names_verb_resource_namespace_and_name(
    api_server: ApiServer, namespace: str, tmp_path: Path
) -> None:
    token = api_server.service_account(namespace, "notebook")
    async with client_of(api_server, namespace, tmp_path, token=token) as client:
        error = await failure(client.patch(WORKSPACES, "lab", [{"op": "add", "path": "/spec/paused", "value": True}]))
        assert error.code == "cluster_forbidden"
        assert error.params == {
            "verb": "patch",
            "resource": "workspaces.kubeflow.org",
            "namespace": namespace,
            "name": "lab",
        }
        assert str(error).startswith("The cluster does not allow this account to patch workspaces.kubeflow.org.")
        scale = await failure(client.merge(STATEFULSETS, "lab", {"spec": {"replicas": 0}}, subresource="scale"))
        assert scale.params["resource"] == "statefulsets.apps/scale"


RIGHTS: list[tuple[str, Resource, str]] = [
    ("get", WORKSPACES, ""),
    ("patch", WORKSPACES, ""),
    ("watch", PODS, ""),
    ("patch", STATEFULSETS, "scale"),
]


@pytest.mark.parametrize("missing", range(len(RIGHTS)))
async def test_S47_may_names_the_one_right_that_is_missing(
    api_server: ApiServer, namespace: str, tmp_path: Path, missing: int
) -> None:
    rights = [Right(verb, resource, subresource=subresource) for verb, resource, subresource in RIGHTS]
    token = api_server.service_account(namespace, "notebook")
    grant(api_server, namespace, "notebook", [right for number, right in enumerate(rights) if number != missing])
    async with client_of(api_server, namespace, tmp_path, token=token) as client:
        assert await client.may(rights) == [rights[missing]]


async def test_S47_a_right_for_one_name_is_no_right_for_all(
    api_server: ApiServer, namespace: str, tmp_path: Path
) -> None:
    mine = [Right(verb, WORKSPACES, name="lab") for verb in ("get", "list", "watch", "patch")]
    token = api_server.service_account(namespace, "notebook")
    grant(api_server, namespace, "notebook", mine)
    async with client_of(api_server, namespace, tmp_path, token=token) as client:
        all_names = Right("list", WORKSPACES)
        elsewhere = Right("get", WORKSPACES, namespace="kube-system", name="lab")
        assert await client.may([*mine, all_names, elsewhere]) == [all_names, elsewhere]
        assert (await client.list(WORKSPACES, field_selector="metadata.name=lab")).items == []


async def test_change_starts_again_on_what_others_wrote(api_server: ApiServer, namespace: str, tmp_path: Path) -> None:
    api_server.apply(config_map("a", count="0"), namespace)
    seen = []

    def make(current: dict[str, Any]) -> list[dict[str, Any]]:
        seen.append(current["data"]["count"])
        if len(seen) < 3:  # somebody else is quicker, twice
            api_server.patch("v1/ConfigMap", "a", {"data": {"count": str(10 * len(seen))}}, namespace)
        return [{"op": "replace", "path": "/data/count", "value": str(int(current["data"]["count"]) + 1)}]

    async with client_of(api_server, namespace, tmp_path) as client:
        changed = await client.change(CONFIG_MAPS, "a", make)
        assert seen == ["0", "10", "20"] and changed["data"]["count"] == "21"
        before = client.requests.copy()
        assert await client.change(CONFIG_MAPS, "a", lambda _: None) == changed
        assert client.requests - before == {("get", "configmaps"): 1}


async def test_change_gives_up_and_tells_a_bad_patch_from_a_race(
    api_server: ApiServer, namespace: str, tmp_path: Path
) -> None:
    api_server.apply(config_map("a", count="0"), namespace)
    tries = []

    def always_late(current: dict[str, Any]) -> list[dict[str, Any]]:
        tries.append(current)
        api_server.patch("v1/ConfigMap", "a", {"data": {"count": str(len(tries))}}, namespace)
        return [{"op": "add", "path": "/data/mine", "value": "1"}]

    async with client_of(api_server, namespace, tmp_path) as client:
        assert (await failure(client.change(CONFIG_MAPS, "a", always_late))).code == "cluster_conflict"
        assert len(tries) == TRIES and "mine" not in (await client.get(CONFIG_MAPS, "a"))["data"]
        before = client.requests["patch", "configmaps"]
        wrong = [{"op": "add", "path": "/data/mine", "value": {"not": "text"}}]
        assert (await failure(client.change(CONFIG_MAPS, "a", lambda _: wrong))).code == "cluster_invalid"
        assert client.requests["patch", "configmaps"] == before + 1


def outside() -> list[Any]:
    """TCP connections of this process that are not listening, whatever their state."""
    return [one for one in psutil.Process().net_connections("tcp") if one.raddr]


def to(server: ApiServer) -> list[Any]:
    """Those of them that lead to the API server; the tests' own client keeps some of its own, see `before`."""
    return [one for one in outside() if one.raddr.port == server.port]


async def test_disconnect_leaves_no_connection_until_reconnect(
    api_server: ApiServer, namespace: str, tmp_path: Path
) -> None:
    """design.md section 8: an open connection can make a snapshot fail and lose the sandbox."""
    api_server.apply(config_map("a", n="1"), namespace)
    before = {one.laddr for one in to(api_server)}

    def ours() -> set[Any]:
        return {one.laddr for one in to(api_server)} - before

    async with client_of(api_server, namespace, tmp_path) as client:
        follower, other = client.follow(CONFIG_MAPS), client.follow(PODS)
        await asyncio.gather(follower.start(), other.start(), client.get(CONFIG_MAPS, "a"))
        assert len(ours()) >= 2
        await client.disconnect()
        assert ours() == set()
        counted = client.requests.copy()
        assert (await failure(client.get(CONFIG_MAPS, "a"))).code == "cluster_disconnected"
        for _ in range(200):  # whoever wanted to reconnect had the chance
            await asyncio.sleep(0)
        assert client.requests == counted and ours() == set() and follower.error is None

        api_server.patch("v1/ConfigMap", "a", {"data": {"n": "2"}}, namespace)
        async with client.briefly():
            assert (await client.get(CONFIG_MAPS, "a"))["data"]["n"] == "2"
            assert len(ours()) == 1
        assert ours() == set() and follower.objects["a"]["data"]["n"] == "1"
        assert client.requests - counted == {("get", "configmaps"): 1}

        changed = asyncio.Event()
        follower.listen(changed.set)
        await client.reconnect()
        await changed.wait()
        assert follower.objects["a"]["data"]["n"] == "2"
    assert ours() == set()


async def test_a_call_under_way_is_cut_by_disconnect(own_api_server: ApiServer, tmp_path: Path) -> None:
    async with client_of(own_api_server, "default", tmp_path, request_timeout=600) as client:
        await client.list(CONFIG_MAPS)
        own_api_server.pause()
        try:
            call = asyncio.create_task(client.list(CONFIG_MAPS))
            while client.requests["list", "configmaps"] < 2:  # noqa: ASYNC110
                await asyncio.sleep(0)
            cuts = []
            for _ in range(5):  # also in the middle of each other
                cuts.append(asyncio.create_task(client.disconnect()))
                await asyncio.sleep(0)
            await asyncio.gather(*cuts)
            assert (await failure(call)).code == "cluster_disconnected" and to(own_api_server) == []
        finally:
            own_api_server.unpause()


async def test_a_kubeconfig_with_a_token(api_server: ApiServer, namespace: str) -> None:
    file = api_server.kubeconfig(api_server.admin_token, namespace)
    config = ClusterConfig.from_kubeconfig(file)
    assert (config.host, config.namespace, config.context) == (api_server.url, namespace, "test")
    assert await names_in(config) == []


async def names_in(config: ClusterConfig) -> list[str]:
    client = ClusterClient(config, clock=SYSTEM_CLOCK)
    try:
        return [one["metadata"]["name"] for one in (await client.list(CONFIG_MAPS)).items]
    finally:
        await client.close()


def kubeconfig_with(server: ApiServer, file: Path, user: dict[str, Any]) -> Path:
    config = yaml.safe_load(server.kubeconfig(server.admin_token).read_text())
    config["users"] = [{"name": "test", "user": user}, {"name": "nobody", "user": {}}]
    config["contexts"].append({"name": "other", "context": {"cluster": "test", "user": "nobody", "namespace": "there"}})
    file.write_text(yaml.safe_dump(config))
    return file


async def test_a_kubeconfig_with_an_exec_plugin(api_server: ApiServer, tmp_path: Path) -> None:
    """The plugin runs once; after a 401 it is asked again, since its token was renewed."""
    runs, token = tmp_path / "runs", tmp_path / "token"
    token.write_text("no-longer-valid")
    plugin = tmp_path / "plugin.py"
    plugin.write_text(f"""
import json, pathlib
with open({str(runs)!r}, "a") as file:
    file.write("run\\n")
status = {{"token": pathlib.Path({str(token)!r}).read_text()}}
print(json.dumps({{"apiVersion": {EXEC_API!r}, "kind": "ExecCredential", "status": status}}))
pathlib.Path({str(token)!r}).write_text({api_server.admin_token!r})
""")
    execute = {"apiVersion": EXEC_API, "command": sys.executable, "args": [str(plugin)]}
    config = ClusterConfig.from_kubeconfig(kubeconfig_with(api_server, tmp_path / "config", {"exec": execute}))
    await names_in(config)
    assert runs.read_text() == "run\nrun\n"


async def test_an_exec_plugin_that_fails_says_so_and_not_what_it_printed(api_server: ApiServer, tmp_path: Path) -> None:
    execute = {
        "apiVersion": EXEC_API,
        "command": sys.executable,
        "args": ["-c", "import sys; sys.exit('the secret is 1234')"],
    }
    config = ClusterConfig.from_kubeconfig(kubeconfig_with(api_server, tmp_path / "config", {"exec": execute}))
    error = await failure(names_in(config))
    assert error.code == "cluster_config_invalid" and "login plugin" in str(error) and "1234" not in str(error)


async def test_a_kubeconfig_with_a_client_certificate(api_server: ApiServer, tmp_path: Path) -> None:
    """The API server of the tests trusts no client certificates, so this one is nobody; TLS was agreed on with it."""
    certificate, key = api_server.certificate("person")
    user = {"client-certificate": str(certificate), "client-key": str(key)}
    config = ClusterConfig.from_kubeconfig(kubeconfig_with(api_server, tmp_path / "config", user))
    assert (await failure(names_in(config))).code in ("cluster_unauthorized", "cluster_forbidden")


@pytest.mark.parametrize(
    ("text", "says"),
    [("{", "not YAML"), ("kind: Config\n", "current-context"), ("current-context: x\ncontexts: []\n", "name x")],
)
def test_a_bad_kubeconfig_is_one_sentence(tmp_path: Path, text: str, says: str) -> None:
    file = tmp_path / "config"
    file.write_text(text)
    with pytest.raises(ClusterError) as caught:
        ClusterConfig.from_kubeconfig(file)
    assert caught.value.code == "cluster_config_invalid" and says in str(caught.value)


def test_no_kubeconfig_and_no_such_context(api_server: ApiServer, tmp_path: Path) -> None:
    with pytest.raises(ClusterError) as missing:
        ClusterConfig.from_kubeconfig(tmp_path / "nowhere")
    assert missing.value.code == "cluster_not_here"
    file = kubeconfig_with(api_server, tmp_path / "config", {"token": "x"})
    assert ClusterConfig.from_kubeconfig(file, "other").namespace == "there"
    with pytest.raises(ClusterError) as caught:
        ClusterConfig.from_kubeconfig(file, "third")
    assert "third" in str(caught.value)


def test_kubeconfigs_of_the_environment_are_merged(
    api_server: ApiServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = kubeconfig_with(api_server, tmp_path / "one", {"token": "x"})
    second = tmp_path / "two"
    second.write_text(yaml.safe_dump({"contexts": [{"name": "more", "context": {"cluster": "test", "user": "test"}}]}))
    monkeypatch.setenv("KUBECONFIG", f"{first}{os.pathsep}{second}")
    assert ClusterConfig.from_kubeconfig(None, "more").host == api_server.url


async def test_a_wrong_authority_is_a_tls_error(api_server: ApiServer, namespace: str, tmp_path: Path) -> None:
    import trustme

    strange = tmp_path / "ca.crt"
    trustme.CA().cert_pem.write_to_path(strange)
    client = ClusterClient(ClusterConfig(host=api_server.url, ca_file=strange, namespace=namespace), clock=SYSTEM_CLOCK)
    try:
        error = await failure(client.list(CONFIG_MAPS))
        assert (error.code, error.params["why"]) == ("cluster_unreachable", "tls")
    finally:
        await client.close()


async def test_a_netrc_entry_does_not_break_anything(
    api_server: ApiServer, namespace: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    netrc = tmp_path / "netrc"
    netrc.write_text("default login me password 1234\n")
    netrc.chmod(0o600)
    monkeypatch.setenv("NETRC", str(netrc))
    async with client_of(api_server, namespace, tmp_path) as client:
        assert (await client.list(CONFIG_MAPS)).items == []


async def test_S44_a_changed_token_file_is_read_before_the_next_request(tmp_path: Path) -> None:
    """Long before the API server would refuse the old one; and while it is being replaced, the old one will do."""
    server = await FaultyServer().start()

    async def empty(_: Any) -> web.Response:
        return web.json_response({"metadata": {}, "items": []})

    server.rules.append(empty)
    token = tmp_path / "token"
    client = ClusterClient(ClusterConfig(host=server.url, namespace="n", token_file=token), clock=SYSTEM_CLOCK)
    try:
        for content in ("first", "second", None, "third\n"):
            token.unlink(missing_ok=True)
            if content is not None:
                token.write_text(content)
            await client.list(CONFIG_MAPS)
        assert [one.token for one in server.seen] == ["first", "second", "second", "third"]
    finally:
        await client.close()
        await server.stop()


def test_in_cluster(tmp_path: Path) -> None:
    environ = {"KUBERNETES_SERVICE_HOST": "fd00::1", "KUBERNETES_SERVICE_PORT": "443"}
    for name, text in (("token", "t"), ("ca.crt", "c"), ("namespace", "team\n")):
        (tmp_path / name).write_text(text)
    config = ClusterConfig.in_cluster(environ, tmp_path)
    assert (config.host, config.namespace, config.token_file) == ("https://[fd00::1]:443", "team", tmp_path / "token")
    for broken in ({}, {"KUBERNETES_SERVICE_HOST": "fd00::1"}):
        with pytest.raises(ClusterError, match="No cluster"):
            ClusterConfig.in_cluster(broken, tmp_path)


HEAVY = ("kubernetes", "aiohttp", "aiohttp_retry", "requests_oauthlib")


def test_what_others_import_is_light() -> None:
    """The modules that a server imports on a laptop bring none of the heavy ones."""
    code = f"""
import sys, json
import jupyter_pause.app, jupyter_pause.pauser, jupyter_pause.cli, jupyter_pause.owners.detection
import jupyter_pause.cluster.client, jupyter_pause.cluster.config, jupyter_pause.cluster.podsnapshots
print(json.dumps([name for name in {HEAVY!r} if name in sys.modules]))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == []
