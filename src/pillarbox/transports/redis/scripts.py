"""The streams around a consumed stream, and the Lua scripts that move entries between them.

Redis executes a script atomically: an entry leaves one stream in the same step in which it arrives in another, so a
crash in between loses nothing and doubles nothing. In every script the XADD comes before the acknowledgement, because
Redis refuses an XADD while it is out of memory, and the script ends there.

    orders                      written by relays; other groups read it, too: nothing here deletes its entries
    orders.billing.delayed      failed entries that wait for their retry; `orders.billing.due` has the times
    orders.billing.retry        entries whose delay is over, and requeued dead letters
    orders.billing.quarantine   entries that crashed several consumers
    orders.dlq                  dead letters of all groups
"""

from __future__ import annotations

from dataclasses import dataclass

from pillarbox.admin.broker_dead_letters import dead_letter_queue
from pillarbox.core.errors import ConfigurationError
from pillarbox.transports.address_template import NOT_IN_NAMES

WORK, RETRY, QUARANTINE = 1, 2, 3
"""The streams that are consumed, as the scripts number them."""
QUARANTINE_AFTER = 2
"""Deliveries without acknowledgement after which an entry is quarantined."""
ABANDONED = 10 * 86_400_000
"""Milliseconds: the idle time of a released entry, longer than any consumer waits before it claims one."""
CONSUMER_PREFIX = "pillarbox-"
_FORGOTTEN = 3_600_000
"""Milliseconds without a command after which a consumer without entries is deleted from its group."""


@dataclass(frozen=True, slots=True)
class ConsumerStreams:
    """The streams of one group on one stream."""

    work: str
    group: str

    def __post_init__(self) -> None:
        for what, name in (("stream", self.work), ("group", self.group)):
            if not name or NOT_IN_NAMES.search(name):
                raise ConfigurationError(
                    f"the {what} {name[:40]!r} is empty, has a control character or is not UTF-8; correct its name"
                )

    @property
    def retry(self) -> str:
        return self._own("retry")

    @property
    def quarantine(self) -> str:
        return self._own("quarantine")

    @property
    def delayed(self) -> str:
        return self._own("delayed")

    @property
    def due(self) -> str:
        return self._own("due")

    @property
    def dead(self) -> str:
        return dead_letter_queue(self.work)

    @property
    def consumed(self) -> tuple[str, str, str]:
        """In the order of `WORK`, `RETRY`, `QUARANTINE`."""
        return self.work, self.retry, self.quarantine

    def _own(self, purpose: str) -> str:
        """A key of this group alone: dots of its name are escaped, so that the last two dots of a key are ours."""
        return f"{self.work}.{self.group.replace('%', '%25').replace('.', '%2E')}.{purpose}"


# Lua can pass about 8,000 arguments: of an entry with more fields, the first are kept.
_ADD = """
local function add(key, fields)
  return redis.pcall('XADD', key, '*', unpack(fields, 1, math.min(#fields, 7000)))
end
local function failed(reply)
  return type(reply) == 'table' and reply['err'] ~= nil
end
local function now()
  local time = redis.call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000)
end
"""
_OWNED = """
local function owned(key, group, consumer, id)
  local found = redis.call('XPENDING', key, group, id, id, 1)
  return found[1] ~= nil and found[1][2] == consumer
end
"""
_RELEASE = f"""
-- Release what a consumer has; returns how many entries. XCLAIM returns nothing for one that was deleted, and drops it.
local deleted = {{}}
local function release(number, group, consumer)
  local released = 0
  for _, entry in ipairs(redis.call('XPENDING', KEYS[number], group, '-', '+', 100000, consumer)) do
    local id = entry[1]
    if #redis.call('XCLAIM', KEYS[number], group, consumer, 0, id, 'IDLE', {ABANDONED}, 'JUSTID') > 0 then
      released = released + 1
    else
      deleted[#deleted + 1] = {{number, id}}
    end
  end
  return released
end
"""

START = f"""
-- KEYS: consumed streams. ARGV: group, consumer. Releases what the consumer had, and deletes forgotten consumers.
-- Returns entries that were deleted while pending (number of the stream, id).
{_RELEASE}
for number, key in ipairs(KEYS) do
  release(number, ARGV[1], ARGV[2])
  for _, facts in ipairs(redis.call('XINFO', 'CONSUMERS', key, ARGV[1])) do
    local known = {{}}
    for i = 1, #facts, 2 do known[facts[i]] = facts[i + 1] end
    local ours = string.sub(known['name'], 1, {len(CONSUMER_PREFIX)}) == '{CONSUMER_PREFIX}'
    if ours and known['pending'] == 0 and known['idle'] > {_FORGOTTEN} then
      redis.call('XGROUP', 'DELCONSUMER', key, ARGV[1], known['name'])
    end
  end
end
return deleted
"""

END = f"""
-- KEYS: consumed streams. ARGV: group, consumer. Releases what the consumer had; deletes it where it had nothing,
-- because Redis would delete its entries from the pending ones with it. Returns what START returns.
{_RELEASE}
for number, key in ipairs(KEYS) do
  if release(number, ARGV[1], ARGV[2]) == 0 then redis.call('XGROUP', 'DELCONSUMER', key, ARGV[1], ARGV[2]) end
end
return deleted
"""

KEEP = f"""
-- KEYS: consumed streams. ARGV: group, consumer, then number of the stream and id of each entry in flight. Restarts the
-- idle time of those that the consumer still has. Returns what START returns.
{_OWNED}
local deleted = {{}}
for i = 3, #ARGV, 2 do
  local key = KEYS[tonumber(ARGV[i])]
  if owned(key, ARGV[1], ARGV[2], ARGV[i + 1]) then
    local kept = redis.call('XCLAIM', key, ARGV[1], ARGV[2], 0, ARGV[i + 1], 'JUSTID')
    if #kept == 0 then deleted[#deleted + 1] = {{tonumber(ARGV[i]), ARGV[i + 1]}} end
  end
end
return deleted
"""

ACK = """
-- KEYS: stream of the group's own. ARGV: group, id. Acknowledges and deletes.
redis.call('XDEL', KEYS[1], ARGV[2])
return redis.call('XACK', KEYS[1], ARGV[1], ARGV[2])
"""

MOVE = f"""
-- KEYS: from, to, due. ARGV: group, consumer, id, '1' to delete it, delay in ms or '', then the fields. Returns 0 if
-- another consumer has the entry, or had it and acknowledged it. An entry that was trimmed is no longer pending: then
-- these fields are the only copy.
{_ADD}{_OWNED}
if not owned(KEYS[1], ARGV[1], ARGV[2], ARGV[3]) then
  local trimmed = ARGV[4] == '0' and #redis.call('XRANGE', KEYS[1], ARGV[3], ARGV[3]) == 0
  if not trimmed then return 0 end
end
local fields = {{}}
for i = 6, #ARGV do fields[i - 5] = ARGV[i] end
local id = add(KEYS[2], fields)
if failed(id) then return id end
if ARGV[5] ~= '' then
  local due = redis.pcall('ZADD', KEYS[3], now() + tonumber(ARGV[5]), id)
  if failed(due) then
    redis.call('XDEL', KEYS[2], id)
    return due
  end
end
redis.call('XACK', KEYS[1], ARGV[1], ARGV[3])
if ARGV[4] == '1' then redis.call('XDEL', KEYS[1], ARGV[3]) end
return 1
"""

FETCH = f"""
-- KEYS: consumed streams, delayed, due. ARGV: group, consumer, idle time of a crashed consumer in ms, how many entries,
-- '1' to fetch one from quarantine, then a cursor for each consumed stream. Returns entries (number of the stream, id,
-- deliveries, fields), entries that were deleted while pending (number, id), cursors, ms until the next retry or -1.
{_ADD}
local group, consumer, idle, free = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4])
local found, deleted, cursors = {{}}, {{}}, {{ARGV[6], ARGV[7], ARGV[8]}}
local function deliveries(key, id)
  local pending = redis.call('XPENDING', key, group, id, id, 1)
  return pending[1] and pending[1][4] or 1
end
local function claim(number, count)
  local reply = redis.call('XAUTOCLAIM', KEYS[number], group, consumer, idle, cursors[number], 'COUNT', count)
  cursors[number] = reply[1]
  for _, id in ipairs(reply[3]) do deleted[#deleted + 1] = {{number, id}} end
  return reply[2]
end
local function read(number, count)
  local reply = redis.call('XREADGROUP', 'GROUP', group, consumer, 'COUNT', count, 'STREAMS', KEYS[number], '>')
  return reply and reply[1] and reply[1][2] or {{}}
end
for number = {WORK}, {RETRY} do
  if free > 0 then
    for _, entry in ipairs(claim(number, free)) do
      local count = deliveries(KEYS[number], entry[1])
      if count > {QUARANTINE_AFTER} and not failed(add(KEYS[{QUARANTINE}], entry[2])) then
        redis.call('XACK', KEYS[number], group, entry[1])
        if number == {RETRY} then redis.call('XDEL', KEYS[number], entry[1]) end
      else
        found[#found + 1] = {{number, entry[1], count, entry[2]}}
        free = free - 1
      end
    end
  end
end
if free > 0 then
  for _, id in ipairs(redis.call('ZRANGE', KEYS[5], '-inf', now(), 'BYSCORE', 'LIMIT', 0, free)) do
    local entry = redis.call('XRANGE', KEYS[4], id, id)[1]
    if entry and failed(add(KEYS[{RETRY}], entry[2])) then break end
    redis.call('XDEL', KEYS[4], id)
    redis.call('ZREM', KEYS[5], id)
  end
  for _, entry in ipairs(read({RETRY}, free)) do found[#found + 1] = {{{RETRY}, entry[1], 1, entry[2]}} end
end
if ARGV[5] == '1' then
  local alone = claim({QUARANTINE}, 1)
  if #alone == 0 then alone = read({QUARANTINE}, 1) end
  for _, entry in ipairs(alone) do
    found[#found + 1] = {{{QUARANTINE}, entry[1], deliveries(KEYS[{QUARANTINE}], entry[1]), entry[2]}}
  end
end
local first = redis.call('ZRANGE', KEYS[5], 0, 0, 'WITHSCORES')
return {{found, deleted, cursors, first[2] and math.max(0, math.floor(first[2] - now())) or -1}}
"""

REQUEUE = f"""
-- KEYS: dead-letter stream, to. ARGV: id. Returns 0 if the dead letter is gone, -1 if there is no stream to move it to.
{_ADD}
local entry = redis.call('XRANGE', KEYS[1], ARGV[1], ARGV[1])[1]
if not entry then return 0 end
if redis.call('EXISTS', KEYS[2]) == 0 then return -1 end
local id = add(KEYS[2], entry[2])
if failed(id) then return id end
redis.call('XDEL', KEYS[1], ARGV[1])
return 1
"""
