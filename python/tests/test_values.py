"""What needs no server."""

import contextlib
import datetime as dt
import http.server
import ssl
import subprocess
import sys
import threading
import time
from decimal import Decimal
from importlib import metadata
from pathlib import Path

import pytest

import era
from era import calls, config, metrics, models


def test_instants_are_read_to_the_microsecond_and_written_in_utc():
    at = models.instant("2026-11-15T17:38:21.016329123Z")
    assert at == dt.datetime(2026, 11, 15, 17, 38, 21, 16329, tzinfo=dt.timezone.utc)
    assert models.instant("2026-11-15T17:38:21Z").microsecond == 0
    assert models.written(at) == "2026-11-15T17:38:21.016329Z"


def test_what_a_newer_server_adds_is_ignored_and_what_is_missing_is_told():
    quote = {"price": "1.5", "start": "2026-11-15T17:38:21Z", "finish": "2026-11-15T18:38:21Z"}
    whole = {"quote": {**quote, "alternative": 0, "parts": [], "shiny": 1}}
    read = models.read(models.Quoted, whole)
    assert read.quote.price == Decimal("1.5")
    assert read.hold is None
    with pytest.raises(TypeError):
        models.read(models.Quoted, {"quote": quote})


def test_resources_are_written_as_kubernetes_writes_them():
    resources = era.Resources(gpu=0.5, memory="16Gi", gpu_model="h100")
    assert resources.as_dict() == {"gpu": 0.5, "memory": "16Gi", "gpu.model": "h100"}


def test_a_bid_leaves_out_what_is_not_said():
    bid = era.Bid(era.Resources(cpu=1), 60)
    assert bid.ask() == {"resources": {"cpu": 1}, "duration_s": 60}


def test_a_value_is_one_amount_or_steps_that_fall():
    assert models.worth(Decimal("12.50")) == "12.50"
    at = dt.datetime(2026, 11, 15, 17, tzinfo=dt.timezone.utc)
    steps = [era.ValueStep(at, 8), era.ValueStep("2026-11-15T18:00:00Z", "0.5")]
    assert models.worth(steps) == [
        {"by": "2026-11-15T17:00:00Z", "worth": "8"},
        {"by": "2026-11-15T18:00:00Z", "worth": "0.5"},
    ]


def test_a_metric_is_one_line_and_a_wrong_one_is_refused(capsys):
    era.log_metric("loss", 0.31, step=200)
    assert capsys.readouterr().out == "era: metric loss=0.31 step=200\n"
    for name, value in [("", 1), ("a b", 1), ("1st", 1), ("loss", float("nan"))]:
        with pytest.raises(ValueError):
            metrics.line(name, value)
    with pytest.raises(ValueError):
        metrics.line("loss", 1, step=-1)


def test_the_server_is_found_as_the_command_line_finds_it(tmp_path):
    (tmp_path / "token").write_text("era_secret\n")
    local = f'{{"url": "http://127.0.0.1:9/", "token_file": "{tmp_path}/token"}}'
    (tmp_path / "local.json").write_text(local)
    here = {"ERA_CONFIG": str(tmp_path)}
    assert config.find(environment=here) == config.Server("http://127.0.0.1:9", "era_secret")
    # A token is never sent to another server than its own.
    other = config.find(environment={**here, "ERA_URL": "https://gpu.example.org/"})
    assert other == config.Server("https://gpu.example.org", None)
    with pytest.raises(era.NoServer):
        config.find("gpu.example.org", environment=here)


def test_a_command_is_words_and_not_a_line():
    with era.Client("http://127.0.0.1:9") as client, pytest.raises(TypeError):
        client.submit("python train.py", {"cpu": 1}, 60)


def test_a_server_that_is_not_there_is_told():
    with era.Client("http://127.0.0.1:9") as client, pytest.raises(era.NoServer):
        client.me()


@contextlib.contextmanager
def scripted(*answers):
    """A listener that gives these answers in turn, each a status and a body; and who asked."""
    asked, left = [], list(answers)

    class Handler(http.server.BaseHTTPRequestHandler):
        def answer(self):
            asked.append((self.command, self.headers.get("idempotency-key")))
            self.rfile.read(int(self.headers.get("content-length", 0)))
            status, body = left.pop(0)
            self.send_response(status)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_POST = answer

        def log_message(self, *_):
            pass

    with http.server.HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}", asked
        server.shutdown()
        thread.join()


def test_a_proxy_whose_servers_are_being_replaced_is_asked_again(monkeypatch):
    pauses = []
    monkeypatch.setattr(time, "sleep", pauses.append)
    gone = (502, b"<html>Bad Gateway</html>")

    def call(method, key=None):
        return calls.Call(method, "/x", lambda body: body, key=key)

    with scripted(gone, gone, (200, b"7")) as (url, asked), era.Client(url) as client:
        assert client._do(call("POST", "k")) == 7
        assert asked == [("POST", "k")] * 3
    # Longer than the two seconds after which nginx asks a server again that was away.
    assert sum(pauses) > 2
    with scripted(gone) as (url, asked), era.Client(url) as client:
        with pytest.raises(era.NoServer, match="502"):
            client._do(call("POST"))
        assert len(asked) == 1
    told = b'{"code": "busy", "detail": "later"}'
    with scripted((503, told)) as (url, asked), era.Client(url) as client:
        with pytest.raises(era.Refused, match="later"):
            client._do(call("GET"))


@pytest.fixture
def used():
    """Takes its messages elsewhere, and is put back."""
    from era import worker

    before = worker.broker
    yield worker
    worker.use(before)


def test_a_celery_worker_reads_what_stands_behind_its_broker_s_address(used):
    for given, url, visibility_s in [
        ("celery://localhost:1/2?lease=5&visibility=60", "redis://localhost:1/2", 60),
        ("rediss://:secret@host/0", "rediss://:secret@host/0", used.VISIBILITY_S),
    ]:
        used.use(given)
        conf = used.app.conf
        assert (conf.broker_url, conf.result_backend) == (url, url)
        assert conf.broker_transport_options["visibility_timeout"] == visibility_s
    with pytest.raises(SystemExit):
        used.main(["--broker", "redis://localhost/0?visibility=long"])


def test_a_celery_worker_encrypts_where_its_address_says_so(used):
    import redis

    for url, encrypted in [("rediss://:secret@host:1/2", True), ("redis://host:1/2", False)]:
        used.use(url + "?lease=5")
        pool = used.app._get_backend().client.connection_pool
        assert issubclass(pool.connection_class, redis.SSLConnection) == encrypted
        assert (pool.connection_kwargs["host"], pool.connection_kwargs["db"]) == ("host", 2)
        for asked in (pool.connection_kwargs, used.app.connection_for_read().ssl or {}):
            assert asked.get("ssl_cert_reqs") == (ssl.CERT_REQUIRED if encrypted else None)


def test_a_celery_worker_passes_on_what_its_node_is_told(used, monkeypatch):
    monkeypatch.setattr(used, "_labels", [])
    monkeypatch.setattr(used, "_hidden", [])
    assert used._described() == ([], [])
    monkeypatch.setenv("ERA_WORKER_LABELS", "rack=a,kind=big")
    monkeypatch.setenv("ERA_WORKER_HIDE", "/shared/era:/srv")
    assert used._described() == (["rack=a", "kind=big"], ["/shared/era", "/srv"])
    monkeypatch.setattr(used.app, "worker_main", lambda _: None)
    used.main(["--label", "rack=b,c", "--label", "x=y", "--hide", "/a:b"])
    assert used._described() == (["rack=b,c", "x=y"], ["/a:b"])


def test_the_installed_package_brings_the_command_line():
    try:
        files = metadata.files("era-scheduler")
    except metadata.PackageNotFoundError:
        pytest.skip("the package is not installed: run scripts/test-python")
    beside = Path(sys.executable).with_name("era")
    assert beside in [Path(file.locate()).resolve() for file in files]
    said = subprocess.run([beside, "version"], capture_output=True, text=True, check=True).stdout
    assert said.startswith("era ")
