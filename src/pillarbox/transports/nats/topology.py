"""Streams as values: their configuration, the names around them, and what differs on a server. No driver is needed.

Streams are in files, keep everything, and refuse messages when they are full, unless configured otherwise: nothing
discards a message that was confirmed unless `discard`, `max_age` or `storage` says so.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, Literal, Protocol

from pillarbox.core.clock import Duration, seconds
from pillarbox.core.errors import ConfigurationError, UnavailableError
from pillarbox.core.payload import Size, size_in_bytes
from pillarbox.settings import ByteSize, Choice, Span, Text, Texts, Whole, about, check_settings, setting
from pillarbox.transports.nats.headers import ApiError

Storage = Literal["file", "memory"]
Retention = Literal["limits", "interest", "workqueue"]
Discard = Literal["new", "old"]

MAX_NAME = 200
"""Characters of the name of a stream: servers name folders after it."""
MAX_SUBJECT = 1000
"""Bytes of a subject: a server closes a connection whose command line is longer than 4,096 bytes."""
MAX_REPLICAS = 5
DUPLICATE_WINDOW = "2m"
_NOT_IN_NAMES = re.compile(r"[^\x21-\x7e]|[.*>/\\]")
_SECOND = 1_000_000_000
STREAM_NOT_FOUND, CONSUMER_NOT_FOUND = 10059, 10014
_OVERLAP = 10065
_WRONG_CONFIG = (10025, 10052, 10056, 10058, 10074, 10139)
"""Errors of JetStream that only other settings, or another stream, can end."""


def check_stream_name(what: str, name: object) -> None:
    """Raise ConfigurationError unless NATS accepts it as the name of a stream or a consumer."""
    if not isinstance(name, str) or not name:
        raise ConfigurationError(f"{what} must have a name, not {name!r}")
    if _NOT_IN_NAMES.search(name):
        raise ConfigurationError(
            f"{what} {name!r}: NATS accepts no space, dot, wildcard (* >), slash, backslash, control or non-ASCII "
            "character in the name; use letters, digits, - and _"
        )
    if len(name) > MAX_NAME:
        raise ConfigurationError(f"{what} {name[:40]!r}… is longer than {MAX_NAME} characters; choose a shorter name")


def check_subject(what: str, subject: object, *, wildcards: bool) -> None:
    """Raise ConfigurationError unless NATS accepts it as a subject, or as a pattern of subjects."""
    if not isinstance(subject, str) or not subject:
        raise ConfigurationError(f"{what} must be a subject, not {subject!r}")
    if fault := subject_fault(subject, wildcards=wildcards):
        raise ConfigurationError(f"{what} {subject[:80]!r}: {fault}")


def subject_fault(subject: str, *, wildcards: bool = False) -> str:
    """Why NATS does not accept a subject; '': it does."""
    if len(subject.encode("utf-8", "surrogatepass")) > MAX_SUBJECT:
        return f"it has over {MAX_SUBJECT} bytes; shorten it"
    if re.search(r"[\s\x00-\x1f\x7f-\x9f\ud800-\udfff]", subject):
        return "it has a space, a control character or a lone surrogate; remove it"
    tokens = subject.split(".")
    if "" in tokens:
        return "it begins or ends with a dot, or has two dots in a row; remove them"
    if wildcards:
        if ">" in tokens[:-1] or any(len(token) > 1 and ("*" in token or ">" in token) for token in tokens):
            return "* stands for one whole word between dots, and > for all words at the end"
    elif "*" in subject or ">" in subject:
        return "a message cannot be sent to a wildcard"
    return ""


def covers(pattern: str, subject: str) -> bool:
    """Whether a pattern has this subject, or all subjects of this pattern."""
    wanted, words = pattern.split("."), subject.split(".")
    for position, word in enumerate(wanted):
        if word == ">":
            return len(words) > position
        if position == len(words) or word not in ("*", words[position]) or words[position] == ">":
            return False
    return len(wanted) == len(words)


def stream_for(subject: str) -> str:
    """The name of the stream that is created for a subject which no stream has: `order.placed` → `order_placed`.

    Two subjects never share a name: a subject of other characters than letters, digits, dots and hyphens has its hash
    in it.
    """
    name = re.sub(r"[^A-Za-z0-9-]", "_", subject)
    if re.fullmatch(r"[A-Za-z0-9.-]+", subject) and len(name) <= MAX_NAME:
        return name
    return f"{name[: MAX_NAME - 20]}_{sha256(subject.encode()).hexdigest()[:12]}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Stream:
    """A stream that the transport declares."""

    name: str = field(metadata=about(Text(), "The name of the stream."))
    subjects: Sequence[str] = field(metadata=about(Texts(), "Its subjects, which may contain wildcards."))
    storage: Storage = setting(
        "file", Choice.of(Storage), "Where messages are stored. `memory` loses confirmed messages in a restart."
    )
    replicas: int = setting(1, Whole("replicas"), "Servers that have a copy, up to 5; 3 survive the loss of one.")
    retention: Retention = setting(
        "limits",
        Choice.of(Retention),
        "How long messages stay: up to the limits, or until all consumers (`interest`) or one (`workqueue`) acked "
        "them. With `interest`, a message without a consumer is discarded at once.",
    )
    duplicate_window: Duration = setting(
        DUPLICATE_WINDOW,
        Span(minimum="100ms"),
        "How long the server recognises a message that is sent again and stores it once.",
    )
    max_age: Duration | None = setting(
        None, Span(minimum="100ms"), "How long a message stays in the stream. Not set: forever."
    )
    max_bytes: Size | None = setting(None, ByteSize(), "The size of the stream. Not set: no limit.")
    max_msgs: int | None = setting(None, Whole("messages"), "Messages in the stream, at most. Not set: no limit.")
    max_msg_size: Size | None = setting(
        None, ByteSize(), "The largest message with its headers. Not set: the limit of the server."
    )
    discard: Discard = setting(
        "new",
        Choice.of(Discard),
        "What a full stream does. `new`: it refuses messages, and they wait in the outbox. `old` discards messages "
        "that were confirmed.",
    )

    def __post_init__(self) -> None:
        check_stream_name("a stream", self.name)
        check_settings(self)
        if not self.subjects:
            raise ConfigurationError(f"{self.label} has no subjects; list at least one")
        for subject in self.subjects:
            check_subject(f"{self.label}: the subject", subject, wildcards=True)
        if self.replicas > MAX_REPLICAS:
            raise ConfigurationError(f"{self.label}: replicas is {self.replicas}; NATS allows up to {MAX_REPLICAS}")
        window, age = self.duplicate_window, self.max_age
        if age is not None and window != DUPLICATE_WINDOW and seconds(window) > seconds(age):
            raise ConfigurationError(f"{self.label}: duplicate_window ({window}) is longer than max_age ({age})")
        object.__setattr__(self, "subjects", tuple(self.subjects))

    @property
    def label(self) -> str:
        return f"stream {self.name!r}"

    def has(self, subject: str) -> bool:
        return any(covers(pattern, subject) for pattern in self.subjects)

    def config(self) -> dict[str, Any]:
        """Its configuration as the server knows it."""
        age = 0.0 if self.max_age is None else seconds(self.max_age)
        window = seconds(self.duplicate_window)
        return {
            "name": self.name,
            "subjects": list(self.subjects),
            "retention": self.retention,
            "storage": self.storage,
            "num_replicas": self.replicas,
            "max_consumers": -1,
            "max_age": round(age * _SECOND),
            "max_bytes": -1 if self.max_bytes is None else size_in_bytes(self.max_bytes, field="max_bytes"),
            "max_msgs": -1 if self.max_msgs is None else self.max_msgs,
            "max_msg_size": -1 if self.max_msg_size is None else size_in_bytes(self.max_msg_size, field="max_msg_size"),
            "discard": self.discard,
            "duplicate_window": round((min(window, age) if age else window) * _SECOND),
        }

    def differences(self, existing: Mapping[str, Any]) -> list[str]:
        """What an existing stream has otherwise, in words. A stream without limits discards nothing either way."""
        wanted = self.config()
        if wanted["max_bytes"] == wanted["max_msgs"] == -1:
            del wanted["discard"]
        found = [
            f"{_SETTINGS.get(name, name)} {_shown(name, existing.get(name))} instead of {_shown(name, value)}"
            for name, value in wanted.items()
            if name not in ("subjects", "max_consumers") and existing.get(name) != value
        ]
        if {*wanted["subjects"]} != {*existing.get("subjects", ())}:
            found.insert(0, f"subjects {existing.get('subjects')} instead of {wanted['subjects']}")
        return found


_SETTINGS = {"num_replicas": "replicas"}


def _shown(name: str, value: Any) -> str:
    if name in ("max_age", "duplicate_window") and isinstance(value, int):
        return f"{value / _SECOND:g}s" if value else "none"
    return "none" if value == -1 else str(value)


def check_streams(streams: Sequence[Stream]) -> tuple[Stream, ...]:
    """The streams. Raises ConfigurationError if two have one name, or one subject."""
    counts = Counter(stream.label for stream in streams)
    if twice := next((label for label, count in counts.items() if count > 1), None):
        raise ConfigurationError(f"{twice} is listed twice; keep one of them")
    for number, stream in enumerate(streams):
        for other in streams[:number]:
            for subject in stream.subjects:
                if other.has(subject) or any(stream.has(theirs) for theirs in other.subjects):
                    raise ConfigurationError(
                        f"{other.label} and {stream.label} overlap in {subject!r}; a subject belongs to one stream"
                    )
    return tuple(streams)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerNames:
    """The streams, subjects and consumers of one group around the stream that it consumes.

    wait        retries that are not due; a consumer of the group that receives one sends it back until then
    ready       retries that are due
    quarantine  messages that crashed several consumers, delivered one at a time
    dead        dead letters, in a stream of their own
    """

    stream: str
    group: str

    def __post_init__(self) -> None:
        check_stream_name("the group", self.group)
        check_stream_name("the stream of dead letters", self.dead_stream)

    @property
    def retry_stream(self) -> str:
        return f"{self.stream}_{self.group}_retry"

    @property
    def dead_stream(self) -> str:
        return f"{self.stream}_{self.group}_dlq"

    def subject(self, kind: Literal["wait", "ready", "quarantine", "dead"]) -> str:
        return f"pillarbox.{self.stream}.{self.group}.{kind}"

    def streams(self, *, replicas: int, storage: Storage) -> list[Stream]:
        """What a consumer declares besides the stream that it consumes; as safe as that one."""
        retry = Stream(
            name=self.retry_stream,
            subjects=[self.subject("wait"), self.subject("ready"), self.subject("quarantine")],
            retention="workqueue",
            replicas=replicas,
            storage=storage,
        )
        dead = Stream(name=self.dead_stream, subjects=[self.subject("dead")], replicas=replicas, storage=storage)
        return [retry, dead]


class JetStreamRequests(Protocol):
    """A connection that carries requests to JetStream."""

    async def request(self, verb: str, payload: dict[str, Any] | None = None) -> dict[str, Any]:
        """Raises ApiError, UnavailableError."""
        ...


class StreamCatalog:
    """The streams of a server as one connection knows them. Every request raises UnavailableError."""

    def __init__(self, connection: JetStreamRequests, where: str) -> None:
        self._connection = connection
        self._where = where
        self._subjects: set[str] = set()
        self._patterns: set[str] = set()

    async def read(self, name: str) -> dict[str, Any] | None:
        """The configuration of a stream; None if there is none. Raises UnavailableError."""
        try:
            answer = await self._connection.request(f"STREAM.INFO.{name}")
        except ApiError as error:
            if error.code == STREAM_NOT_FOUND:
                return None
            raise UnavailableError(f"stream {name!r} at {self._where} cannot be read: {error}") from error
        config: dict[str, Any] = answer["config"]
        return config | {"state": answer.get("state", {}), "cluster": answer.get("cluster")}

    async def names(self, subject: str) -> list[str]:
        """The names of the streams that have a subject, or a part of a pattern. Raises UnavailableError."""
        try:
            return (await self._connection.request("STREAM.NAMES", {"subject": subject})).get("streams") or []
        except ApiError as error:
            raise UnavailableError(f"JetStream at {self._where} refuses to name its streams: {error}") from error

    async def declare(self, streams: Iterable[Stream]) -> None:
        """Create streams; those that exist stay as they are. Raises UnavailableError, and ConfigurationError with the
        difference if one exists that is not what the configuration says."""
        for stream in streams:
            existing = await self.read(stream.name)
            if existing is None:
                await self.create(stream)
            elif differences := stream.differences(existing):
                raise ConfigurationError(
                    f"{stream.label} at {self._where} has {'; '.join(differences)}; change the settings, change the "
                    f"stream (nats stream edit {stream.name}), or set declare = false"
                )
            self.add_subjects(stream.subjects)

    async def create(self, stream: Stream) -> None:
        """Create a stream. Raises UnavailableError, ConfigurationError."""
        try:
            await self._connection.request(f"STREAM.CREATE.{stream.name}", stream.config())
        except ApiError as error:
            text = f"{stream.label} at {self._where} cannot be created: {error}"
            if error.code == _OVERLAP:
                raise ConfigurationError(
                    f"{text}; another stream has one of its subjects {list(stream.subjects)}"
                ) from error
            if error.code in _WRONG_CONFIG:
                raise ConfigurationError(f"{text}; correct the settings of the stream") from error
            raise UnavailableError(text) from error

    def has(self, subject: str) -> bool:
        """Whether a stream has the subject, unless the stream was deleted since."""
        return subject in self._subjects or any(covers(pattern, subject) for pattern in self._patterns)

    def forget(self) -> None:
        """Look for streams again before the next batch: one may have been deleted."""
        self._subjects.clear()
        self._patterns.clear()

    def add_subjects(self, subjects: Iterable[str]) -> None:
        """These subjects have a stream."""
        for subject in subjects:
            (self._patterns if "*" in subject or ">" in subject else self._subjects).add(subject)

    async def provide(self, subject: str, *, replicas: int | None) -> None:
        """Create a stream for a subject which no stream has, unless `replicas` is None. Raises UnavailableError,
        ConfigurationError."""
        if names := await self.names(subject):
            self.add_subjects((await self.read(names[0]) or {}).get("subjects") or [subject])
        elif replicas is None:
            raise ConfigurationError(
                f"no stream at {self._where} has subject {subject!r}, and none is created for each aggregate or key; "
                "configure a stream with wildcards for it"
            )
        else:
            try:
                await self.create(Stream(name=stream_for(subject), subjects=[subject], replicas=replicas))
            except ConfigurationError:
                if not await self.names(subject):  # no other process created one in between
                    raise
            self.add_subjects([subject])
