"""A Redis that is spoken to in secret."""

import os
import subprocess
import sys

import pytest
from conftest import Process, free_port

# Both connections that a Celery worker has: for messages, and for results.
ASK = """
from era import worker
worker.app.connection_for_read().ensure_connection(max_retries=1, interval_start=0)
print(worker.app.backend.client.ping())
"""


@pytest.fixture
def secret(folder):
    """Its address, and the certificate that it shows."""
    key, shown, port = folder / "key.pem", folder / "shown.pem", free_port()
    make = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"]
    make += ["-nodes", "-days", "1", "-subj", "/CN=redis", "-addext", "subjectAltName=IP:127.0.0.1"]
    subprocess.run([*make, "-keyout", key, "-out", shown], check=True, capture_output=True)
    command = ["redis-server", "--port", 0, "--tls-port", port, "--bind", "127.0.0.1"]
    command += ["--tls-cert-file", shown, "--tls-key-file", key, "--tls-auth-clients", "no"]
    server = Process([*command, "--save", "", "--dir", folder], folder)
    server.wait_for("Ready to accept connections")
    yield f"rediss://127.0.0.1:{port}/0", shown
    server.stop()


def asked(address: str, **env: str) -> subprocess.CompletedProcess:
    env = {**os.environ, "ERA_BROKER": address, **env}
    return subprocess.run([sys.executable, "-c", ASK], env=env, capture_output=True, text=True)


def test_a_celery_worker_is_connected_in_secret_to_a_server_that_it_trusts(secret):
    address, certificate = secret
    trusted = asked(address, SSL_CERT_FILE=str(certificate))
    assert trusted.stdout == "True\n", trusted.stderr
    named = asked(f"{address}?ca={certificate}")
    assert named.stdout == "True\n", named.stderr
    refused = asked(address)
    assert refused.returncode != 0 and "certificate verify failed" in refused.stderr
