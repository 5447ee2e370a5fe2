/** The scripts beside requests: renewal and report, loading, deletion and the check (`redis-common.ts` describes the keys). */
import { script } from '../core/limits/redis.ts'
import { keepMs, minuteMs, silenceMs } from './constants.ts'
import { age, change, guard, prelude, reset } from './redis-common.ts'
import { admitScript, settleScript } from './redis-request-scripts.ts'

/**
 * Renews what an instance has, and reports it to a Redis that has lost its counters. KEYS 2 is the set of instances, then
 * accounts. ARGV 3 is JSON: `instance`, `lease`, `allowance` and `grace` in ms, `isMore` if another call of the same report
 * follows (accounts load a grace after it), `isLeaving`, and per account: `open` requests with ID, checkpoint (`tokens:cost`
 * or empty) and detail (as in l:); `ended` ones that the ledger may not have, with ID and detail; and `rows`
 * (`toAllowanceRows`; the empty name is the account's).
 *
 * Replies {number of instances, per account: per row tokens and cost that it should hold}. An instance never holds more
 * than is counted as spent: a smaller allowance counts from the next renewal on. Replies {-3} if ended requests are
 * reported after the grace.
 */
export const reportScript = script(`${prelude}${guard}${age}${change}${reset}
local sent = cjson.decode(ARGV[3])
local instance, isLate = sent.instance, age >= sent.grace
local holdUntil = state[3] or '0'
if not state[2] or now - state[2] > ${silenceMs} then holdUntil = whole(now + sent.lease) end
call('HSET', KEYS[1], 'b', max(now, state[2] or 0), 'h', holdUntil)
if sent.isMore and not isLate then call('HSET', KEYS[1], 'e', now) end
call('ZADD', KEYS[2], now, instance)
if sent.isLeaving then call('ZREM', KEYS[2], instance) end
call('ZREMRANGEBYSCORE', KEYS[2], '-inf', now - sent.lease)
local instances = max(1, call('ZCARD', KEYS[2]))

local function reportOpen(account, isLoaded, id, checkpoint, detail)
  local has, over = unpack(call('HMGET', account, 'l:' .. id, 'x:' .. id))
  if over then return end
  local tokens, cost, _, day, admitted, names = match(has or detail, lease)
  if not has then
    call('HSET', account, 'l:' .. id, detail)
    countMinute(account, names, id, admitted)
    if isLoaded then
      change(account, day, tokens, cost)
      changeScopes(account, names, day, tokens, cost)
    end
  end
  if checkpoint ~= '' then call('HSET', account, 'p:' .. id, checkpoint) end
  call('ZADD', account .. ':leases', now + sent.lease, id)
  for name in gmatch(names, '[^\\n]+') do
    local base = account .. '|' .. name
    call('ZADD', base .. ':leases', now + sent.lease, id)
    for _, suffix in ipairs({'', ':minute', ':leases'}) do call('PEXPIRE', base .. suffix, ${keepMs}) end
    listScope(account, name)
  end
end

local function reportAllowance(account, isLoaded, row)
  local base = row.name == '' and account or account .. '|' .. row.name
  local limitTokens, limitCost, limitMonth = unpack(row.limits)
  local wantTokens, wantCost = unpack(row.wants)
  local typicalTokens, typicalCost = unpack(row.typical)
  local tokens, cost = unpack(row.has)
  local all, others = call('HGETALL', base .. ':held'), {0, 0}
  local own = {0, 0}
  for i = 1, #all, 2 do
    local heldTokens, heldCost, expiry = match(all[i + 1], '^(%d+):(%d+):(%d+)$')
    if all[i] == instance then
      own = {heldTokens - 0, heldCost - 0}
    elseif expiry - now < 0 then
      call('HDEL', base .. ':held', all[i])
      others = {others[1] + heldTokens, others[2] + heldCost}
    end
  end
  local has = call('HMGET', base, 'g', 'day', 'tokens', 'cost', 'month', 'monthCost')
  local wishTokens, wishCost = 0, 0
  if has[1] == generation then
    local function share(limit, used, typical, want)
      if not limit then return want end
      local left = limit - used
      return left < instances * typical and 0 or max(0, min(want, floor(left / (2 * instances))))
    end
    local freeTokens, freeCost = own[1] + others[1], own[2] + others[2]
    wishTokens = share(limitTokens, has[3] - freeTokens, typicalTokens, wantTokens)
    wishCost = share(limitCost, has[4] - freeCost, typicalCost, wantCost)
    if has[5] and limitMonth then wishCost = min(wishCost, share(limitMonth, has[6] - freeCost, typicalCost, wantCost)) end
    if wishTokens == 0 or wishCost == 0 and wantCost > 0 then wishTokens, wishCost = 0, 0 end
    local counted, countedCost = max(tokens, wishTokens), max(cost, wishCost)
    change(base, has[2], counted - freeTokens, countedCost - freeCost)
    tokens, cost = counted, countedCost
  end
  if tokens + cost > 0 then
    call('HSET', base .. ':held', instance, whole(tokens) .. ':' .. whole(cost) .. ':' .. whole(now + sent.allowance))
    call('PEXPIRE', base .. ':held', ${keepMs})
    if row.name ~= '' then listScope(account, row.name) end
  else
    call('HDEL', base .. ':held', instance)
  end
  return wishTokens, wishCost
end

local replies = {instances}
for index, reported in ipairs(sent.accounts) do
  local account = KEYS[index + 2]
  if reset(account) then
    reported.open, reported.ended = {}, {}
    for _, row in ipairs(reported.rows) do row.has = {0, 0} end
  end
  local isLoaded, reply = call('HGET', account, 'g') == generation, {}
  for _, request in ipairs(reported.open) do reportOpen(account, isLoaded, unpack(request)) end
  for _, request in ipairs(reported.ended) do
    local id, detail = unpack(request)
    if isLate then return {-3} end
    call('HDEL', account, 'l:' .. id, 'p:' .. id)
    call('ZREM', account .. ':leases', id)
    call('HSETNX', account, 'x:' .. id, detail)
  end
  for _, suffix in ipairs({'', ':minute', ':leases', ':scopes'}) do call('PEXPIRE', account .. suffix, ${keepMs}) end
  for place, row in ipairs(reported.rows) do
    local tokens, cost = reportAllowance(account, isLoaded, row)
    reply[place] = {whole(tokens), whole(cost)}
  end
  replies[index + 1] = reply
end
return replies
`)

/**
 * Returns the generation of a partition's counters and its age. ARGV 3: a generation that is over, or empty; 4: a new name. A new one
 * begins if the server has none, is another one (a restarted server may have lost its last second, and a promoted replica
 * its last moments), or has the given one.
 */
export const beginScript = script(`${prelude}
local run, known = match(call('INFO', 'server'), 'run_id:(%x+)'), state[1]
if not known or known == ARGV[3] or match(known, '^%x+') ~= run then
  known = run .. ':' .. ARGV[4] .. ':' .. whole(now)
  call('DEL', KEYS[1])
  call('HSET', KEYS[1], 'g', known)
end
return {known, max(0, now - match(known, '%d+$'))}
`)

/** Replies {1} if the account is loaded, {2} if it is deleted, else {0, day, age of the generation in ms, IDs of reported requests…}. */
export const reportedScript = script(`${prelude}${guard}${age}${reset}
local account = KEYS[2]
if reset(account) then return {2} end
if call('HGET', account, 'g') == generation then return {1} end
local reply = {0, floor(now / 86400000), age}
for _, field in ipairs(call('HKEYS', account)) do
  if sub(field, 1, 2) == 'l:' or sub(field, 1, 2) == 'x:' then reply[#reply + 1] = sub(field, 3) end
end
return reply
`)

/**
 * Loads an account from the ledger and what instances reported. ARGV 3: JSON of a `LedgerUsage` with its `day` and
 * the number of `reported` requests, which only grows; of a loaded account only scopes that are new. Replies {1}, or {2} if
 * requests were reported since, or the account was deleted.
 */
export const loadScript = script(`${prelude}${guard}${change}${reset}
local account, known = KEYS[2], cjson.decode(ARGV[3])
if reset(account) then return {2} end
local isLoaded, reported = call('HGET', account, 'g') == generation, {}
if isLoaded and known.reported then return {1} end
if not isLoaded then
  local all = call('HGETALL', account)
  for i = 1, #all, 2 do
    local kind = sub(all[i], 1, 2)
    if kind == 'l:' or kind == 'x:' then reported[#reported + 1] = {kind, sub(all[i], 3), all[i + 1]} end
  end
  if #reported ~= known.reported then return {2} end
end
local month, scopes, listedAs = monthOf(known.day), {}, {}
for _, row in ipairs(known.scopes) do
  local name = row.name .. '@' .. whole(row.since)
  local base = account .. '|' .. name
  local had = isLoaded and call('HGET', base, 'g')
  if had ~= generation then
    -- Of an earlier generation. Without counters, the open requests of this one still count.
    if had then call('DEL', base, base .. ':held') end
    if had or not isLoaded then call('DEL', base .. ':leases') end
    local heldTokens, heldCost = heldOf(base)
    scopes[name] = {row.tokens + heldTokens, row.microcents + heldCost, row.monthMicrocents + heldCost}
    -- Records name the key or tag only. Keys of one lineage may have got limits at different times.
    listedAs[name] = {name}
    listedAs[row.name] = listedAs[row.name] or {}
    table.insert(listedAs[row.name], name)
  end
end
local tokens, cost = heldOf(account)
tokens, cost = tokens + (known.tokens or 0), cost + (known.microcents or 0)
local newest = 0
for _, request in ipairs(reported) do
  local kind, id, detail = unpack(request)
  local ofTokens, ofCost, cap, day, admitted, names = match(detail, lease)
  local present = known.present[id]
  if present and kind == 'l:' then
    -- It has ended, and the ledger counts it.
    call('HDEL', account, 'l:' .. id, 'p:' .. id)
    call('ZREM', account .. ':leases', id)
    call('HSET', account, 'x:' .. id, whole(present.tokens) .. ':' .. whole(present.microcents) .. ':' .. cap .. ':' .. day .. ':' .. admitted .. '\\n' .. names)
  end
  local isToday, isRecent = day - known.day == 0, now - admitted < ${minuteMs}
  if isToday and not present then tokens, cost = tokens + ofTokens, cost + ofCost end
  if isRecent then
    newest = max(newest, admitted)
    call('ZADD', account .. ':minute', admitted, id)
  end
  local expiry = kind == 'l:' and not present and call('ZSCORE', account .. ':leases', id)
  for listed in gmatch(names, '[^\\n]+') do
    for _, name in ipairs(listedAs[listed] or {}) do
      local one = scopes[name]
      if isToday and not present then one[1], one[2] = one[1] + ofTokens, one[2] + ofCost end
      if monthOf(day) == month and not present then one[3] = one[3] + ofCost end
      if isRecent then call('ZADD', account .. '|' .. name .. ':minute', admitted, id) end
      if expiry then call('ZADD', account .. '|' .. name .. ':leases', expiry, id) end
    end
  end
end
local function write(base, ...)
  call('HSET', base, 'g', generation, 'day', whole(known.day), ...)
  for _, suffix in ipairs({'', ':minute', ':leases'}) do call('PEXPIRE', base .. suffix, ${keepMs}) end
end
for name, one in pairs(scopes) do
  listScope(account, name)
  write(account .. '|' .. name, 'tokens', whole(one[1]), 'cost', whole(one[2]), 'month', month, 'monthCost', whole(one[3]))
end
if not isLoaded then write(account, 'tokens', whole(tokens), 'cost', whole(cost), 'at', whole(newest)) end
return {1}
`)

/** Deletes all counters of a deleted account, and marks it: instances may still report or settle what they have of it. */
export const forgetScript = script(`
local call, account = redis.call, KEYS[1]
for _, name in ipairs(call('SMEMBERS', account .. ':scopes')) do
  for _, suffix in ipairs({'', ':minute', ':leases', ':held'}) do call('DEL', account .. '|' .. name .. suffix) end
end
for _, suffix in ipairs({'', ':minute', ':leases', ':held', ':notes', ':scopes'}) do call('DEL', account .. suffix) end
call('HSET', account, 'gone', '1')
call('PEXPIRE', account, ${keepMs})
return 1
`)

/**
 * Runs each command of the scripts on KEYS 1, beginning with one that needs memory: after another write of the same
 * script, a full Redis would accept it. Replies `INFO memory`.
 */
export const checkScript = script(`
local commands = {
  {'HSET', 'a', '1'}, {'HSETNX', 'a', '1'}, {'HGET', 'a'}, {'HMGET', 'a'}, {'HGETALL'}, {'HKEYS'}, {'HDEL', 'a'},
  {'SADD', 'a'}, {'SMEMBERS'}, {'DEL'},
  {'ZADD', 1, 'a'}, {'ZRANGEBYSCORE', '-inf', '+inf'}, {'ZREMRANGEBYSCORE', '-inf', 0}, {'ZCARD'}, {'ZCOUNT', 0, 1},
  {'ZSCORE', 'a'}, {'PEXPIRE', 1000}, {'ZREM', 'a'}, {'DEL'},
}
for _, command in ipairs(commands) do redis.call(command[1], KEYS[1], unpack(command, 2)) end
redis.call('TIME')
return redis.call('INFO', 'memory')
`)

/** All scripts of the meter, to be loaded with each new connection. */
export const meterScripts = [
  admitScript,
  settleScript,
  reportScript,
  beginScript,
  reportedScript,
  loadScript,
  forgetScript,
]
