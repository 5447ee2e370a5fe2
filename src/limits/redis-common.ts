/**
 * The rule of `decide.ts` as Lua, and the upkeep of its counters. Keys of an account, all in one cluster slot:
 *
 *   <account>            hash: g the generation that its counters are loaded under; r that of its reports; day, tokens, cost
 *                        of that day with reservations and allowances; at = time of the last admission;
 *                        l:<id> lease, `tokens:cost:cap:day:admitted` and names of scopes, one per line;
 *                        p:<id> its latest checkpoint, `tokens:cost`; x:<id> a request that ended without a lease:
 *                        its lease ran out, or it was admitted from an allowance; as l:, with what was used;
 *                        gone: the account is deleted, and no other key of it may come back
 *   <account>:minute     sorted set: admissions by millisecond
 *   <account>:leases     sorted set: open requests by expiry
 *   <account>:held       hash: instance → `tokens:cost:expiry`, its allowance
 *   <account>:notes      hash: beginning of a conversation's digest → its note
 *   <account>:scopes     set: names of scopes that have keys
 *   <account>|<scope>    hash: g, day, tokens, cost, month, monthCost; and its sets, as of the account
 *
 * KEYS 1 is the state of the partition, a hash: g = generation, `run ID:name:milliseconds`; b = last renewal; h = no lease
 * ends before; e = a report announced its next call. The others are accounts. ARGV begins with the time (empty = the server's own) and the caller's generation.
 * Under another generation a script replies {-1}: Redis has lost its counters since. Numbers are written with %.0f,
 * since Lua's own format turns large ones into 1e+15.
 */
import { keepMs, minuteMs, silenceMs } from './constants.ts'

export const prelude = `
local call, floor, ceil, max, min = redis.call, math.floor, math.ceil, math.max, math.min
local match, gmatch, sub, format = string.match, string.gmatch, string.sub, string.format
local now = tonumber(ARGV[1])
if not now then
  local time = call('TIME')
  now = time[1] * 1000 + floor(time[2] / 1000)
end
local generation = ARGV[2]
local state = call('HMGET', KEYS[1], 'g', 'b', 'h')
local function whole(number) return format('%.0f', number) end
-- Months since March of year 0: only their equality and order matter.
local function monthOf(day)
  local days = day + 719468
  local era = floor(days / 146097)
  local inEra = days - era * 146097
  local year = floor((inEra - floor(inEra / 1460) + floor(inEra / 36524) - floor(inEra / 146096)) / 365)
  local inYear = inEra - (365 * year + floor(year / 4) - floor(year / 100))
  return (year + era * 400) * 12 + floor((5 * inYear + 2) / 153)
end
local function heldOf(base)
  local all, tokens, cost = call('HGETALL', base .. ':held'), 0, 0
  for i = 2, #all, 2 do
    local heldTokens, heldCost = match(all[i], '^(%d+):(%d+):')
    tokens, cost = tokens + heldTokens, cost + heldCost
  end
  return tokens, cost
end
`

export const guard = `
if state[1] ~= generation then return {-1} end
`

/** Milliseconds since the generation began, or since an instance announced more calls of its report. */
export const age = `
local age = now - max(match(generation, '%d+$') - 0, tonumber(call('HGET', KEYS[1], 'e') or 0))
`

/** Changes the counters of an account or a scope by usage of a day. */
export const change = `
local today = floor(now / 86400000)
-- Days only go forward. A new one begins with the allowances, also before its first admission by Redis.
local function begin(base, has, day)
  if has[2] - day >= 0 then return end
  has[2], has[3], has[4] = day, heldOf(base)
  if has[5] and has[5] - monthOf(day) < 0 then has[5], has[6] = monthOf(day), has[4] end
end
local function change(base, day, tokens, cost)
  local has = call('HMGET', base, 'g', 'day', 'tokens', 'cost', 'month', 'monthCost')
  if has[1] ~= generation then return end
  begin(base, has, min(day, today))
  if has[2] - day == 0 then
    call('HSET', base, 'day', has[2], 'tokens', whole(has[3] + tokens), 'cost', whole(has[4] + cost))
  end
  if has[5] and has[5] - monthOf(day) == 0 then
    call('HSET', base, 'month', has[5], 'monthCost', whole(has[6] + cost))
  end
end
local function changeScopes(account, names, day, tokens, cost, endedId)
  for name in gmatch(names, '[^\\n]+') do
    local base = account .. '|' .. name
    change(base, day, tokens, cost)
    if endedId then call('ZREM', base .. ':leases', endedId) end
  end
end
local lease = '^(%d+):(%d+):(%d+):(%d+):(%d+)\\n(.*)$'
-- Notes that a scope has keys: the deletion of its account finds them here.
local function listScope(account, name)
  call('SADD', account .. ':scopes', name)
  call('PEXPIRE', account .. ':scopes', ${keepMs})
end
-- Counts in the minute a request that this Redis has not admitted.
local function countMinute(account, names, id, admitted)
  if now - admitted >= ${minuteMs} then return end
  local function add(base)
    call('ZADD', base .. ':minute', min(admitted, now), id)
    call('PEXPIRE', base .. ':minute', ${keepMs})
  end
  add(account)
  for name in gmatch(names, '[^\\n]+') do
    add(account .. '|' .. name)
    listScope(account, name)
  end
end
`

/** Ends leases of dead instances: counts what their last checkpoints used. */
export const expire = `${change}
local function expire(account)
  if not state[2] or now - state[2] > ${silenceMs} or now < (state[3] or 0) - 0 then return end
  local due = call('ZRANGEBYSCORE', account .. ':leases', '-inf', now, 'LIMIT', 0, 100)
  for _, id in ipairs(due) do
    local detail, checkpoint = unpack(call('HMGET', account, 'l:' .. id, 'p:' .. id))
    if detail then
      local tokens, cost, cap, day, at, names = match(detail, lease)
      local usedTokens, usedCost = 0, 0
      if checkpoint then usedTokens, usedCost = match(checkpoint, '^(%d+):(%d+)$') end
      change(account, day, usedTokens - tokens, usedCost - cost)
      changeScopes(account, names, day, usedTokens - tokens, usedCost - cost, id)
      call('HSET', account, 'x:' .. id, usedTokens .. ':' .. usedCost .. ':' .. cap .. ':' .. day .. ':' .. at .. '\\n' .. names)
    end
    call('HDEL', account, 'l:' .. id, 'p:' .. id)
    call('ZREM', account .. ':leases', id)
  end
end
`

/** A new day of an account: forgets requests that ended on earlier days. */
export const forget = `
local function forget(account, day)
  local all = call('HGETALL', account)
  for i = 1, #all, 2 do
    if sub(all[i], 1, 2) == 'x:' then
      local _, _, _, ended = match(all[i + 1], lease)
      if ended - day < -1 then call('HDEL', account, all[i]) end
    end
  end
end
`

/** Drops what an account has of an earlier generation. Returns true if the account is deleted: nothing is kept of it. */
export const reset = `
local function reset(account)
  local reported, gone = unpack(call('HMGET', account, 'r', 'gone'))
  if gone then return true end
  if reported == generation then return end
  call('DEL', account, account .. ':leases', account .. ':held')
  call('HSET', account, 'r', generation)
  call('PEXPIRE', account, ${keepMs})
end
`
