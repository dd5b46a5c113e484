"""The Lua scripts that change documents."""

from __future__ import annotations

from typing import Final

from entrepot_redis.commands import Lua

_COMMON: Final = """
local generation = redis.call('HGET', KEYS[1], 'generation')
if generation ~= ARGV[1] then return {'stale', generation} end
local keys = #KEYS - 1
local function store(key, first, last)
    local at = first
    while at <= last do
        local to = math.min(at + 1999, last)
        redis.call('HSET', key, unpack(ARGV, at, to))
        at = to + 1
    end
end
local function indexed(written)
    local number = 0
    for first = 1, #written, 1000 do
        local last = math.min(first + 999, #written)
        local query = {'FT.SEARCH', ARGV[2], '*', 'INKEYS', last - first + 1, unpack(written, first, last)}
        for _, word in ipairs({'LIMIT', '0', '0', 'TIMEOUT', '0', 'DIALECT', '2'}) do query[#query + 1] = word end
        number = number + redis.call(unpack(query))[1]
    end
    return number
end
"""
"""KEYS: record, then documents. ARGV: generation, index, mode."""

WRITE: Final = Lua(
    _COMMON
    + """
local at, changed, there = 4, false, {'exists'}
local first, last = {}, {}
for i = 1, keys do
    local expected, size = ARGV[at], tonumber(ARGV[at + 1])
    first[i], last[i] = at + 2, at + 1 + size
    at = at + 2 + size
    if expected ~= '*' or ARGV[3] == 'error' then
        local number = redis.call('HGET', KEYS[i + 1], 'n')
        if expected ~= '*' and (number or '') ~= expected then changed = true end
        if ARGV[3] == 'error' and number then there[#there + 1] = i - 1 end
    end
end
if changed then return {'changed'} end
if #there > 1 then return there end
local number = tonumber(redis.call('HGET', KEYS[1], 'written'))
local written = {}
for i = 1, keys do
    local key = KEYS[i + 1]
    local place = redis.call('HGET', key, 'q')
    if not place or ARGV[3] ~= 'skip' then
        number = number + 1
        local text = string.format('%d', number)
        if place then redis.call('DEL', key) end
        redis.call('HSET', key, 'n', text, 'q', place or text, unpack(ARGV, first[i], math.min(first[i] + 1999, last[i])))
        store(key, first[i] + 2000, last[i])
        written[#written + 1] = key
    end
end
redis.call('HSET', KEYS[1], 'written', string.format('%d', number))
return {'done', #written, indexed(written)}
"""
)
"""Behind the mode (replace, skip or error), for each document: the number expected, how many arguments
follow, fields and values in turn. Returns stale, changed, exists with places from 0, or done with how many
documents were written and how many of them the index has."""

REWRITE: Final = Lua(
    _COMMON
    + """
local at, changed = 4, {'changed'}
local first, last = {}, {}
for i = 1, keys do
    local expected, size = ARGV[at], tonumber(ARGV[at + 1])
    at = at + 2
    if redis.call('HGET', KEYS[i + 1], 'n') ~= expected then
        changed[#changed + 1] = i - 1
    else
        first[i], last[i] = at, at + size - 1
    end
    at = at + size
end
if ARGV[3] == 'all' and #changed > 1 then return changed end
local number = tonumber(redis.call('HGET', KEYS[1], 'written'))
local written = {}
for i = 1, keys do
    if first[i] then
        local key = KEYS[i + 1]
        local kept = {}
        for _, field in ipairs({'q', 'v', 'x', 'w'}) do
            local value = redis.call('HGET', key, field)
            if value then
                kept[#kept + 1] = field
                kept[#kept + 1] = value
            end
        end
        number = number + 1
        redis.call('DEL', key)
        redis.call('HSET', key, 'n', string.format('%d', number), unpack(kept))
        store(key, first[i], last[i])
        written[#written + 1] = key
    end
end
redis.call('HSET', KEYS[1], 'written', string.format('%d', number))
if #changed > 1 then return changed end
return {'done', #written, indexed(written)}
"""
)
"""As `WRITE`, for documents whose text and vector stay; the mode is each or all. Returns places of those
that another writer changed, which stay as they are; with all, nothing is written then."""

DELETE: Final = Lua(
    _COMMON
    + """
local doomed = {}
for i = 1, keys do
    local expected = ARGV[i + 3]
    if expected == '*' or (redis.call('HGET', KEYS[i + 1], 'n') or '') == expected then
        doomed[#doomed + 1] = KEYS[i + 1]
    elseif ARGV[3] == 'all' then
        return {'changed'}
    end
end
for _, key in ipairs(doomed) do redis.call('DEL', key) end
return {'done', #doomed, #doomed}
"""
)
"""Behind the mode (each or all), for each document the number expected."""
