"""The scripts that Redis runs in one step, so that two workers cannot get between each other's commands.

Each comment names the keys and the arguments in their order.
"""

from __future__ import annotations

# keys: head, thread; arguments: the head that was found (empty for none), the new head, its seconds
CLAIM_THREAD = """
local version, kind = redis.call('HGET', KEYS[2], 'version') or '', redis.call('TYPE', KEYS[1]).ok
local head = kind == 'string' and redis.call('GET', KEYS[1]) or ''
if head ~= ARGV[1] then return {0, head, kind} end
redis.call('SET', KEYS[1], ARGV[2], 'EX', ARGV[3])
return {1, version, kind}
"""
"""Reserves a thread; returns 1 and the thread's version, or 0 and the head that is there instead, and the head's type.

A head of another type is overwritten. A thread of another type is an error, before anything is written."""

# keys: thread, head, events; arguments: the turn, the id of an end, the text, its version, its seconds
SAVE_THREAD = """
local head, last = redis.call('GET', KEYS[2]), redis.call('XREVRANGE', KEYS[3], '+', '-', 'COUNT', 1)
if not head or not string.find(head, ARGV[1], 1, true) or (last[1] and last[1][1] == ARGV[2]) then return 0 end
redis.call('HSET', KEYS[1], 'text', ARGV[3], 'version', ARGV[4])
redis.call('EXPIRE', KEYS[1], ARGV[5])
return 1
"""
"""Stores a thread and returns 1; returns 0 if its turn has ended, or is not the newest any more."""

# keys: thread, head, events; arguments: the last known id, the id of an end, the changes, the text (empty for none),
# its version, its seconds, the seconds of the turn
END_TURN = """
local last = redis.call('XREVRANGE', KEYS[3], '+', '-', 'COUNT', 1)
if (last[1] and last[1][1] or '0-0') ~= ARGV[1] then return 0 end
redis.call('XADD', KEYS[3], ARGV[2], 'changes', ARGV[3])
if ARGV[4] ~= '' then
  redis.call('HSET', KEYS[1], 'text', ARGV[4], 'version', ARGV[5])
  redis.call('EXPIRE', KEYS[1], ARGV[6])
end
redis.call('EXPIRE', KEYS[2], ARGV[7])
redis.call('EXPIRE', KEYS[3], ARGV[7])
return 1
"""
"""Ends the turn of a worker that has ended, and stores the thread; returns 0 if the turn has gone on since."""

# keys: head, events; arguments: the turn, the seconds of the turn
FORGET_TURN = """
local head = redis.call('GET', KEYS[1])
if head and string.find(head, ARGV[1], 1, true) then redis.call('EXPIRE', KEYS[1], ARGV[2]) end
redis.call('EXPIRE', KEYS[2], ARGV[2])
"""
"""Lets a turn expire that has ended, but not the head of a newer one."""
