"""Messages that nobody here can serve.

Celery discards what it does not know, and ends at what is no message at all. Here each is put where
a person finds it (`era worker dead`), with the reason, its sender is told, and only then is it
acknowledged: as `era worker` does it, in the same words where it is the same mistake.
"""

from __future__ import annotations

import logging
import sys
import time
import zlib
from typing import Any

from celery.app.task import Context
from celery.exceptions import NotRegistered
from celery.worker import consumer
from kombu.exceptions import ContentDisallowed, DecodeError
from kombu.transport import TRANSPORT_ALIASES, redis, virtual
from kombu.utils.encoding import bytes_to_str
from kombu.utils.json import dumps, loads
from redis.exceptions import RedisError

from ..node import AGAIN_S

DEAD = "era:dead"
DEAD_MAX = 10_000
TAKEN = "era:taken"
BODY_BYTES_MAX = 16 << 20
NAME_CHARS_MAX = 512
ID_BYTES_MAX = 2048
WHY_CHARS_MAX = 1000
# What Celery calls so is zlib's format.
GZIP = "application/x-gzip"
PICKLE = "application/x-python-serialize"
FORMATS = "send JSON, MessagePack or YAML"

# What headers of protocol 2 are, where they are there: Celery takes their word for it.
HEADERS: dict[str, type] = {
    "eta": str,
    "expires": str,
    "group": str,
    "group_index": int,
    "ignore_result": bool,
    "parent_id": str,
    "retries": int,
    "root_id": str,
    "shadow": str,
    "stamped_headers": list,
    "stamps": dict,
    "timelimit": list,
}

log = logging.getLogger("era.worker")


def bury(client: Any, queue: str, raw: bytes, why: str, tag: str = "") -> None:
    """Puts a message with the dead and acknowledges it in one step, however long Redis takes to
    come back: it is in nobody's hands but ours."""
    # Not every name that JSON can write can be sent.
    why = why[:WHY_CHARS_MAX].encode(errors="replace").decode()
    while True:
        try:
            at = f"{time.time():.3f}"
            fields = {"queue": queue, "at": at, "why": why, "message": raw}
            with client.pipeline() as all:
                all.xadd(DEAD, fields, maxlen=DEAD_MAX, approximate=True)
                if tag:
                    all.zrem(redis.Channel.unacked_index_key, tag)
                    all.hdel(redis.Channel.unacked_key, tag)
                    all.hdel(TAKEN, tag)
                all.execute()
            break
        except (RedisError, OSError) as error:
            log.warning("what became of a message waits for Redis: %s", error)
            time.sleep(AGAIN_S)
    log.warning("a message of %s was put with the dead: %s", queue, why)


def _check_packed(how: Any, body: Any) -> None:
    """Celery unpacks whatever it is sent, however large that becomes."""
    if how != GZIP:
        told = "compress it with gzip, or not at all"
        raise DecodeError(f"bodies compressed as `{str(how)[:100]}` are not understood: {told}")
    if len(zlib.decompressobj().decompress(body, BODY_BYTES_MAX + 1)) > BODY_BYTES_MAX:
        most = "send at most that, and large data as files"
        raise DecodeError(
            f"the body has more than {BODY_BYTES_MAX} bytes once it is unpacked: {most}"
        )


class Message(virtual.Message):
    """A message that knows how it lay in its queue."""

    errors: Any = None

    def __init__(self, payload: Any, channel: Any = None, **kwargs: Any):
        how = (payload.get("headers") or {}).get("compression")
        if how:
            body = channel.decode_body(payload["body"], payload["properties"].get("body_encoding"))
            try:
                _check_packed(how, body)
            except Exception:
                # As if it could not be unpacked: it is not tried.
                self.errors = [sys.exc_info()]
        super().__init__(payload, channel=channel, **kwargs)
        self.queue, self.raw = channel.popped

    def bury(self, client: Any, why: str) -> None:
        bury(client, self.queue, self.raw, why, self.delivery_tag)


class Channel(redis.Channel):
    """Takes from the queues what is a message, and puts the rest with the dead."""

    Message = Message
    # The queue and the bytes of the message that was taken last.
    popped = ("", b"")

    def _create_client(self, asynchronous: bool = False) -> Any:
        client = super()._create_client(asynchronous)
        if asynchronous:
            # Before the transport reads it, which would end the worker.
            client.set_response_callback("BRPOP", self._pop)
        return client

    def _pop(self, response: Any, **_: Any) -> Any:
        """What a queue gave: nothing, where that was no message."""
        if not response:
            return None
        key, raw = response
        self.popped = bytes_to_str(key).rsplit(self.sep, 1)[0], raw
        if self._is_message(raw):
            return key, raw
        with self.conn_or_acquire() as client:
            bury(client, *self.popped, "it is not wrapped as Celery wraps messages")
        return None

    def _is_message(self, raw: bytes) -> bool:
        try:
            payload = loads(bytes_to_str(raw))
            message = self.Message(payload, channel=self)
            # What cannot be written cannot be held either.
            dumps([message.headers, message.properties], ensure_ascii=False).encode()
        except Exception:
            return False
        tag, info = message.delivery_tag, message.delivery_info
        if not (isinstance(tag, str) and tag and isinstance(payload.get("body"), str)):
            return False
        return all(isinstance(info.get(name), str) for name in ("exchange", "routing_key"))

    def _handle_message(self, client: Any, response: Any) -> Any:
        """What was published. A command to workers that is none is passed over: nobody holds it,
        and the transport would end the worker."""
        payload = super()._handle_message(client, response)
        data = payload.get("data")
        if isinstance(data, bytes) and data and not self._is_command(data):
            log.warning("a command to workers cannot be read: %r", data[:WHY_CHARS_MAX])
            payload["data"] = b""
        return payload

    def _is_command(self, raw: bytes) -> bool:
        try:
            return isinstance(self.Message(loads(bytes_to_str(raw)), channel=self).decode(), dict)
        except Exception:
            return False

    def decode_body(self, body: Any, encoding: Any = None) -> Any:
        """A body that is not in base64, as its properties say, is none: its sender can be told."""
        try:
            return super().decode_body(body, encoding)
        except Exception:
            return ""


class Transport(redis.Transport):
    Channel = Channel


# By the names that addresses have: they are shown as they were given.
for scheme in ("redis", "rediss"):
    TRANSPORT_ALIASES[scheme] = f"{__name__}:Transport"


def _is_limit(value: Any) -> bool:
    return value is None or (isinstance(value, (int, float)) and not isinstance(value, bool))


def _wrong_headers(headers: dict[str, Any]) -> str | None:
    if "task" not in headers:
        return "the message has no header `task`: send tasks by protocol 2 (`task_protocol = 2`)"
    wrong = [name for name in ("task", "id") if not isinstance(headers.get(name), str)]
    for name, kind in HEADERS.items():
        if not isinstance(headers.get(name), (kind, type(None))):
            wrong.append(name)
    limits, stamps = headers.get("timelimit"), headers.get("stamped_headers")
    if not wrong and limits and not (len(limits) == 2 and all(map(_is_limit, limits))):
        wrong.append("timelimit")
    if not wrong and not all(isinstance(stamp, str) for stamp in stamps or []):
        wrong.append("stamped_headers")
    if wrong:
        return f"its headers are not those of protocol 2: {', '.join(wrong)}"
    for name, what in (("task", "name"), ("id", "id")):
        if not 0 < len(headers[name]) <= NAME_CHARS_MAX:
            return f"its {what} is too long: use at most {NAME_CHARS_MAX} characters"
    return None


def _wrong_body(message: Any) -> str | None:
    length = len(message.body or b"")
    if length > BODY_BYTES_MAX:
        most = f"send at most {BODY_BYTES_MAX}, and large data as files"
        return f"the body has {length} bytes: {most}"
    try:
        body = message.decode()
    except ContentDisallowed:
        if message.content_type == PICKLE:
            return f"pickle runs code when it is read: {FORMATS}"
        return f"content type `{str(message.content_type)[:100]}` is not understood: {FORMATS}"
    except Exception as error:
        return f"the body cannot be read: {first_line(error)}"
    shape = "its body is not [arguments, named arguments, embed]"
    if not isinstance(body, (list, tuple)) or len(body) != 3:
        return shape
    args, kwargs, embed = body
    embed = {} if embed is None else embed
    if not (isinstance(args, (list, tuple)) and isinstance(kwargs, dict) and isinstance(embed, dict)):
        return shape
    calls = [embed.get(name) for name in ("callbacks", "errbacks", "chain")]
    if not all(isinstance(call, (list, tuple, type(None))) for call in calls):
        return shape
    return None


def first_line(error: Exception) -> str:
    """Readers show the place with a drawing; a sentence needs its first line."""
    return (str(error).splitlines() or [type(error).__name__])[0]


class Consumer(consumer.Consumer):
    """Serves what is a task of ours, and puts the rest with the dead."""

    def create_task_handler(self, *args: Any, **kwargs: Any) -> Any:
        serve = super().create_task_handler(*args, **kwargs)

        def judge(message: Any) -> None:
            if why := _wrong_headers(message.headers) or _wrong_body(message):
                return self._refuse(message, why)
            try:
                serve(message)
            except (*self.connection_errors, *self.channel_errors):
                raise
            except Exception as error:
                # It would end this worker, and then the next one that has it.
                log.exception("a message could not be taken on")
                self._refuse(message, f"it could not be taken on: {first_line(error)}")

        return judge

    def on_decode_error(self, message: Any, exc: Exception) -> None:
        self._refuse(message, f"the body cannot be read: {first_line(exc)}")

    def on_invalid_task(self, body: Any, message: Any, exc: Exception) -> None:
        self._refuse(message, first_line(exc))

    def on_unknown_task(self, body: Any, message: Any, exc: Exception) -> None:
        headers, (_, _, embed) = message.headers, message.payload
        why = f"no task is called `{headers['task']}` here: this worker has era.run and era.exec"
        # It fails with all that follows, as any task does.
        request = Context(headers, **(embed or {}), delivery_info=message.delivery_info)
        self.app.backend.mark_as_failure(headers["id"], NotRegistered(why), request=request)
        self._bury(message, why)

    def _refuse(self, message: Any, why: str) -> None:
        """Whoever sent it, if that can be read, is told what is wrong."""
        id = message.headers.get("id")
        if isinstance(id, str) and 0 < len(id.encode()) <= ID_BYTES_MAX:
            self.app.backend.mark_as_failure(id, DecodeError(why))
        self._bury(message, why)

    def _bury(self, message: Any, why: str) -> None:
        message.bury(self.app.backend.client, why)
        if not message.acknowledged:
            # It is already; the channel has to know that it may take another.
            message.ack()
