# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""A real kube-apiserver over a real etcd, on loopback, with RBAC: the cluster of the tests, without any nodes.

What is not here: kubelet, scheduler and every controller. Pods stay Pending until a test writes their status, a deleted
namespace keeps its objects, owner references collect no garbage, and no namespace gets a `default` service account.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import shutil
import signal
import socket
import ssl
import subprocess
import tempfile
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import trustme
import yaml

from . import tokens
from .rest import ApiError, Object, Rest

#: Seconds the API server may take to become ready on a machine that is busy with other tests.
START_LIMIT = 120.0
ADMIN = "admin"
ISSUER = "https://kubernetes.default.svc"

#: One line per request, without bodies; not the API server's requests to itself.
AUDIT_POLICY = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "rules": [{"level": "None", "users": ["system:apiserver"]}, {"level": "Metadata"}],
}


@dataclass(frozen=True)
class Request:
    """One request as the API server's audit log has it."""

    #: get, list, watch, create, update, patch, delete, deletecollection.
    verb: str
    #: Path and query.
    uri: str
    #: For a service account `system:serviceaccount:NAMESPACE:NAME`.
    user: str
    #: HTTP status; a watch has its status from the moment it began.
    status: int
    #: RFC 3339 with microseconds.
    received: str


class ApiServer:
    """etcd and kube-apiserver over one temporary folder.

    Args:
        binaries: folder with `kube-apiserver` and `etcd`.
        flags: more flags for kube-apiserver; one that is set here already is replaced.
    """

    def __init__(self, binaries: Path, *, flags: Mapping[str, str] | None = None) -> None:
        self.binaries = binaries
        self.folder = Path(tempfile.mkdtemp(prefix="jupyter-pause-apiserver-"))
        self.ca = str(self.folder / "ca.crt")
        self.admin_token = secrets.token_urlsafe(32)
        self.authority = trustme.CA()
        self.port = 0
        self._flags = dict(flags or {})
        self._etcd: subprocess.Popen[bytes] | None = None
        self._server: subprocess.Popen[bytes] | None = None
        self._guards: dict[int, subprocess.Popen[bytes]] = {}
        self._clients: dict[str, Rest] = {}
        self._write_files()

    def start(self) -> ApiServer:
        """Start what does not run, over the same data and on the same port as before; wait until it is ready.

        Raises:
            RuntimeError: it ended, or was not ready in time; the end of its log says why.
        """
        if self._etcd is None:
            self._etcd = self._spawn("etcd", self._etcd_flags())
        if self._server is None:
            self.port = self.port or _free_port()
            self._server = self._spawn("kube-apiserver", self._server_flags())
        self._wait_until_ready()
        return self

    def kill(self) -> None:
        """kill -9 of the API server, as when its machine dies; etcd and all data stay. `start()` brings it back."""
        self._end("_server")

    def pause(self) -> None:
        """Let it hang: connections are accepted by the kernel and never answered."""
        assert self._server is not None
        self._server.send_signal(signal.SIGSTOP)

    def unpause(self) -> None:
        """Let it go on after `pause`."""
        assert self._server is not None
        self._server.send_signal(signal.SIGCONT)

    def stop(self) -> None:
        """End both processes and remove their folder."""
        for client in self._clients.values():
            client.close()
        self._end("_server")
        self._end("_etcd")
        shutil.rmtree(self.folder, ignore_errors=True)

    @property
    def pids(self) -> tuple[int, ...]:
        """The process ids of what runs, etcd first."""
        return tuple(process.pid for process in (self._etcd, self._server) if process is not None)

    @property
    def url(self) -> str:
        """Its address."""
        return f"https://127.0.0.1:{self.port}"

    @property
    def admin(self) -> Path:
        """A kubeconfig of the administrator (group system:masters)."""
        return self.kubeconfig(self.admin_token, name="admin")

    def api(self, token: str | None) -> Rest:
        """The API as the user of this token; None: anonymous."""
        key = token or ""
        if key not in self._clients:
            self._clients[key] = Rest(self.url, self.ca, token)
        return self._clients[key]

    @property
    def as_admin(self) -> Rest:
        """The API as the administrator."""
        return self.api(self.admin_token)

    def get(self, kind: str, name: str, namespace: str | None = None) -> Object:
        """One object, as the administrator. Kinds are named as in `Rest`."""
        return self.as_admin.get(kind, name, namespace)

    def list(self, kind: str, namespace: str | None = None) -> Sequence[Object]:
        """All objects of a kind, as the administrator."""
        return self.as_admin.list(kind, namespace)

    def patch(
        self, kind: str, name: str, patch: object, namespace: str | None = None, *, subresource: str | None = None
    ) -> Object:
        """Merge patch (mapping) or JSON patch (list), as the administrator."""
        return self.as_admin.patch(kind, name, patch, namespace, subresource=subresource)

    def delete(self, kind: str, name: str, namespace: str | None = None) -> None:
        """Delete an object, as the administrator."""
        self.as_admin.delete(kind, name, namespace)

    def apply(self, documents: str | Object | Iterable[Object], namespace: str | None = None) -> Sequence[Object]:
        """Server-side apply of YAML text or parsed documents, as the administrator."""
        return self.as_admin.apply(documents, namespace)

    def namespace(self, prefix: str = "test") -> str:
        """A new namespace. Returns its name."""
        name = f"{prefix}-{secrets.token_hex(4)}"
        self.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        return name

    def service_account(self, namespace: str, name: str, *, seconds: int = 3600) -> str:
        """A token for a service account, which is made if it is not there. Every call gives a new token.

        Args:
            seconds: from now to its end, also fewer than the 600 that the API server grants, and negative. The API
                server allows a minute more for clocks that differ, and believes a token that it has just checked for
                ten seconds: -61 is refused from the beginning, -50 stops working within 20 seconds.
        """
        account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name, "namespace": namespace}}
        self.apply(account)
        request = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenRequest",
            "spec": {"expirationSeconds": max(seconds, 600)},
        }
        path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{name}/token"
        token: str = self.as_admin.request("POST", path, request)["status"]["token"]
        return token if seconds >= 600 else tokens.ending_in(token, seconds, self.folder / "accounts.key")

    def revoke(self, namespace: str, name: str) -> None:
        """End all tokens of a service account, by deleting it and making it again. Takes effect within ten seconds."""
        self.delete("v1/ServiceAccount", name, namespace)
        account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name, "namespace": namespace}}
        self.apply(account)

    def kubeconfig(self, token: str, namespace: str = "default", *, name: str | None = None) -> Path:
        """An owner-only kubeconfig with one context that uses this token and namespace."""
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "test",
            "clusters": [{"name": "test", "cluster": {"server": self.url, "certificate-authority": self.ca}}],
            "users": [{"name": "test", "user": {"token": token}}],
            "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test", "namespace": namespace}}],
        }
        return self._write(f"kubeconfig-{name or secrets.token_hex(4)}", yaml.safe_dump(config))

    def kubectl(self, *arguments: str, kubeconfig: Path | None = None) -> str:
        """What kubectl prints.

        Raises:
            subprocess.CalledProcessError: it failed; `stderr` says why.
        """
        command = [str(self.binaries / "kubectl"), f"--kubeconfig={kubeconfig or self.admin}", *arguments]
        env = {"PATH": os.environ.get("PATH", os.defpath), "HOME": str(self.folder)}
        done = subprocess.run(command, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=True)
        return done.stdout

    def audit(self, *, user: str | None = None) -> Sequence[Request]:
        """All requests so far in the order they were answered, of one user or of all. A watch counts once."""
        requests: dict[str, Request] = {}
        lines = (self.folder / "audit.log").read_text(encoding="utf-8").splitlines(keepends=True)
        for line in lines:
            if line.endswith("\n"):
                entry = json.loads(line)
                requests.setdefault(entry["auditID"], _request(entry))
        return [request for request in requests.values() if user in (None, request.user)]

    def certificate(self, *names: str) -> tuple[Path, Path]:
        """Certificate and key for a server of the test's own (a webhook), signed by this cluster's CA (`ca`)."""
        made = self.authority.issue_cert(*(names or ("127.0.0.1", "localhost")))
        stem = f"served-{secrets.token_hex(4)}"
        chain = "".join(blob.bytes().decode() for blob in made.cert_chain_pems)
        return self._write(f"{stem}.crt", chain), self._write(f"{stem}.key", made.private_key_pem.bytes().decode())

    def log(self, lines: int = 40) -> str:
        """The end of the API server's own log."""
        path = self.folder / "kube-apiserver.log"
        return "\n".join(path.read_text(encoding="utf-8", errors="replace").splitlines()[-lines:])

    def _write_files(self) -> None:
        self._write("ca.crt", self.authority.cert_pem.bytes().decode())
        served = self.authority.issue_cert("127.0.0.1", "localhost", "kubernetes.default.svc")
        self._write("server.crt", "".join(blob.bytes().decode() for blob in served.cert_chain_pems))
        self._write("server.key", served.private_key_pem.bytes().decode())
        # Any key pair will do for signing service-account tokens.
        signer = self.authority.issue_cert("service-accounts")
        self._write("accounts.key", signer.private_key_pem.bytes().decode())
        self._write("tokens.csv", f"{self.admin_token},{ADMIN},{ADMIN},system:masters\n")
        self._write("audit-policy.yaml", yaml.safe_dump(AUDIT_POLICY))
        self._write("audit.log", "")

    def _etcd_flags(self) -> dict[str, str]:
        # Unix sockets in the owner-only folder: no other user of the machine reaches the store. etcd takes host and
        # port of such a URL as a file name in its working directory.
        return {
            "data-dir": "etcd",
            "listen-client-urls": "unix://etcd:1",
            "advertise-client-urls": "unix://etcd:1",
            "listen-peer-urls": "unix://peer:1",
            "initial-advertise-peer-urls": "unix://peer:1",
            "initial-cluster": "default=unix://peer:1",
            "unsafe-no-fsync": "true",
            "log-level": "warn",
        }

    def _server_flags(self) -> dict[str, str]:
        return {
            "etcd-servers": "unix://etcd:1",
            "bind-address": "127.0.0.1",
            "secure-port": str(self.port),
            # There is no `kubernetes` service to keep endpoints for, and a loopback address is not allowed there.
            "endpoint-reconciler-type": "none",
            "cert-dir": ".",
            "tls-cert-file": "server.crt",
            "tls-private-key-file": "server.key",
            "token-auth-file": "tokens.csv",
            "authorization-mode": "RBAC",
            "service-account-issuer": ISSUER,
            "service-account-key-file": "accounts.key",
            "service-account-signing-key-file": "accounts.key",
            "service-cluster-ip-range": "10.0.0.0/24",
            # It asks for a `default` service account in every namespace, which a controller would make.
            "disable-admission-plugins": "ServiceAccount",
            "allow-privileged": "true",
            "audit-policy-file": "audit-policy.yaml",
            "audit-log-path": "audit.log",
            "audit-log-maxsize": "0",
            "profiling": "false",
            "shutdown-delay-duration": "0s",
            "v": "1",
            **self._flags,
        }

    def _spawn(self, name: str, flags: Mapping[str, str]) -> subprocess.Popen[bytes]:
        with (self.folder / f"{name}.log").open("ab") as log:
            process = subprocess.Popen(
                [str(self.binaries / name), *(f"--{flag}={value}" for flag, value in flags.items())],
                cwd=self.folder,
                env={"PATH": os.defpath, "HOME": str(self.folder)},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                umask=0o077,
            )
        # When this test process is killed, the pipe closes, and the guard ends and removes what nobody else would.
        self._guards[process.pid] = subprocess.Popen(
            ["/bin/sh", "-c", 'read -r _; kill -KILL "$1"; rm -rf "$2"', "guard", str(process.pid), str(self.folder)],
            stdin=subprocess.PIPE,
            start_new_session=True,
        )
        return process

    def _end(self, attribute: str) -> None:
        process: subprocess.Popen[bytes] | None = getattr(self, attribute)
        if process is None:
            return
        guard = self._guards.pop(process.pid)
        guard.kill()
        assert guard.stdin is not None
        guard.stdin.close()
        guard.wait()
        process.kill()
        process.wait()
        setattr(self, attribute, None)

    def _wait_until_ready(self) -> None:
        end = time.monotonic() + START_LIMIT
        context = ssl.create_default_context(cafile=self.ca)
        with httpx.Client(verify=context, trust_env=False, timeout=5) as http:
            while not self._ready(http):
                ended = [p for p in (self._etcd, self._server) if p is not None and p.poll() is not None]
                if ended or time.monotonic() > end:
                    state = "ended" if ended else "is not ready"
                    raise RuntimeError(f"the API server {state}:\n{self.log()}\n{self._etcd_log()}")
                time.sleep(0.1)

    def _ready(self, http: httpx.Client) -> bool:
        with contextlib.suppress(httpx.HTTPError):
            answer = http.get(f"{self.url}/readyz", headers={"Authorization": f"Bearer {self.admin_token}"})
            return answer.status_code == 200
        return False

    def _etcd_log(self) -> str:
        return (self.folder / "etcd.log").read_text(encoding="utf-8", errors="replace")[-4000:]

    def _write(self, name: str, text: str) -> Path:
        path = self.folder / name
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
        return path


def _request(entry: Mapping[str, Any]) -> Request:
    return Request(
        entry["verb"],
        entry["requestURI"],
        entry["user"].get("username", ""),
        entry.get("responseStatus", {}).get("code", 0),
        entry["requestReceivedTimestamp"],
    )


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


__all__ = ["ApiError", "ApiServer", "Request", "Rest"]
