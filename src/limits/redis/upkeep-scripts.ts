/**
 * The maintenance scripts: loading an account, leases of dead instances, and the epoch (`account-script.ts` describes
 * the fields).
 */
import { allPartitions, counterFormat, getKeys, script } from '../../core/limits/redis.ts'
import { common, expire, guard, keepMs } from './account-script.ts'
import { admitScript, raiseScript, settleScript } from './request-scripts.ts'
import { loadedScopes, newScopes } from './scope-scripts.ts'

/**
 * Loads an account under a new epoch, unless another instance has. ARGV 3…: lease in ms, and JSON: `day`, `tokens` and
 * `cost` from the ledger, `rows` of limit_reservations [ID, tokens, cost, cap, day, 1 = open, age of the admission in
 * ms, names of scopes], `scopes` [name, tokens, cost, cost of the month, since], and `living` instances. Keeps leases of dead instances with their checkpoints, since no instance registers them,
 * and marks of ended leases without a checkpoint, since no counter and no ledger has them. Replies {1, IDs of kept
 * leases…} or {-1}.
 */
export const loadScript = script(`${common}${guard}
local had = call('HGET', account, 'e')
if had == epoch then return {1} end
local known, expiry = cjson.decode(ARGV[4]), now + tonumber(ARGV[3])
local y, t, c, n, x = known.day, known.tokens, known.cost, 0, 0
${loadedScopes}
local s, z = t, c
local fields, listed, living, times, stay = {}, {}, {}, {}, {1}
for _, gateway in ipairs(known.living) do living[gateway] = true end
for _, row in ipairs(known.rows) do
  local id, tokens, cost, cap, leaseDay, isOpen, age = row[1], row[2], row[3], row[4], row[5], row[6] == 1, row[7]
  local scopes = counterNames(row[8] or {})
  listed[id] = true
  addScopes(scopes, leaseDay, tokens, cost, isOpen, age < 60000 and now - age or nil)
  if isOpen and #scopes > 0 then
    fields[#fields + 1] = 'k:' .. id
    fields[#fields + 1] = table.concat(scopes, '\\n')
  end
  if leaseDay == y then
    t, c = t + tokens, c + cost
    if not isOpen then s, z = s + tokens, z + cost end
  end
  if isOpen then
    n, x = n + 1, expiry
    fields[#fields + 1] = 'l:' .. id
    fields[#fields + 1] = whole(expiry) .. ':' .. whole(tokens) .. ':' .. whole(cost) .. ':' .. whole(cap) .. ':' .. whole(leaseDay)
  end
  if age < 60000 then times[#times + 1] = now - age end
end
local all, value = call('HGETALL', account), {}
for i = 1, #all, 2 do value[all[i]] = all[i + 1] end
if value.m then
  -- Records of a dead gateway may still be in its journal. What Redis had settled of the day only grows.
  local hadDay, _, _, hadTokens, hadCost = unpack_('${counterFormat}', value.m)
  if hadDay == y then
    t, c = t + max(0, hadTokens - s), c + max(0, hadCost - z)
    s, z = max(s, hadTokens), max(z, hadCost)
  end
end
mergeScopes(value)
local kept = {}
for field, text in pairs(value) do
  local kind, id = sub(field, 1, 2), sub(field, 3)
  local lease, owner = value['l:' .. id], value['o:' .. id]
  if kind == 'g:' and match(text, '^%d+:0$') then
    for _, one in ipairs({field, text, value['k:' .. id] and 'k:' .. id, value['k:' .. id]}) do fields[#fields + 1] = one end
  elseif kind == 'p:' and lease and not listed[id] and not (owner and living[owner]) then
    local ends, tokens, cost, _, leaseDay = match(lease, '^(%d+):(%d+):(%d+):(%d+):(%d+)$')
    n, x = n + 1, x > 0 and min(x, tonumber(ends)) or tonumber(ends)
    stay[#stay + 1] = id
    if tonumber(leaseDay) == y then t, c = t + tonumber(tokens), c + tonumber(cost) end
    for _, one in ipairs({field, text, 'l:' .. id, lease, 'o:' .. id, owner or ''}) do fields[#fields + 1] = one end
    local names = value['k:' .. id]
    if names then
      local list = {}
      for name in string.gmatch(names, '[^\\n]+') do list[#list + 1] = name end
      kept[#kept + 1] = {list, tonumber(leaseDay), tonumber(tokens), tonumber(cost)}
      fields[#fields + 1] = 'k:' .. id
      fields[#fields + 1] = names
    end
  end
end
for _, one in ipairs(kept) do addScopes(one[1], one[2], one[3], one[4], true) end
call('DEL', account)
call('HSET', account, 'e', epoch)
writeScopes()
setCounters(y, t, c, s, z, n, x)
for i = 1, #fields, 2 do call('HSET', account, fields[i], fields[i + 1]) end
if #times > 0 then
  table.sort(times)
  for i, time in ipairs(times) do times[i] = pack('<I4', time % 4294967296) end
  call('HSET', account, 'a', table.concat(times))
end
call('PEXPIRE', account, ${keepMs})
return stay
`)

/** Adds scopes to a loaded account. Replies {1}, {0} if the account is not loaded, or {-1}. */
export const loadScopesScript = script(`${common}${guard}
if call('HGET', account, 'e') ~= epoch then return {0} end
${newScopes}`)

/**
 * KEYS 3: the set of accounts with checkpoints. ARGV 3…: lease in ms, account ID, instance ID, then pairs of an ID and
 * its checkpoint (`tokens:cost`, empty = no new one). An ended lease stays ended. Replies {1}, {0, day} if the
 * account is not loaded, or {-1}.
 */
export const renewScript = script(`${common}${guard}
if call('HGET', account, 'e') ~= epoch then return {0, day} end
local expiry = whole(now + tonumber(ARGV[3]))
local checkpointed = false
for i = 6, #ARGV, 2 do
  local id = ARGV[i]
  local rest = call('HGET', account, 'l:' .. id)
  if rest then
    rest = match(rest, '^%d+(:.*)$')
    if ARGV[i + 1] == '' then
      call('HSET', account, 'l:' .. id, expiry .. rest)
    else
      call('HSET', account, 'l:' .. id, expiry .. rest, 'p:' .. id, ARGV[i + 1], 'o:' .. id, ARGV[5])
      checkpointed = true
    end
  end
end
if checkpointed then call('ZADD', KEYS[3], 'LT', expiry, ARGV[4]) end
return {1}
`)

/**
 * KEYS 1: the set of accounts with checkpoints. ARGV 1: the time (empty = the server's own). Replies at most 100
 * accounts that may have an expired lease. Another instance that calls within a second gets different ones.
 */
export const dueScript = script(`
local now = tonumber(ARGV[1])
if not now then
  local time = redis.call('TIME')
  now = time[1] * 1000 + math.floor(time[2] / 1000)
end
local due = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', now, 'LIMIT', 0, 100)
for _, account in ipairs(due) do redis.call('ZADD', KEYS[1], 'XX', string.format('%.0f', now + 1000), account) end
return due
`)

/**
 * Ends expired leases of an account without requests. KEYS 3: the set of accounts with checkpoints. ARGV 3…: account
 * ID, and the living instances. Under an older epoch it ends only leases of dead instances, since the living ones have
 * registered theirs elsewhere.
 */
export const sweepScript = script(`${common}
local has = call('HMGET', account, 'e', 'm')
if not has[2] then
  call('ZREM', KEYS[3], ARGV[3])
  return {1}
end
local y, t, c, s, z, n, x = unpack_('${counterFormat}', has[2])
${expire}
if has[1] == epoch and call('GET', KEYS[2]) == epoch then
  expire()
elseif #ARGV > 3 then
  local living = {}
  for i = 4, #ARGV do living[ARGV[i]] = true end
  expire(living)
end
if x > 0 then call('ZADD', KEYS[3], whole(max(x, now + 1000)), ARGV[3]) else call('ZREM', KEYS[3], ARGV[3]) end
return {1}
`)

/**
 * Compares a partition's epoch with the one in Postgres. KEYS: the epoch. ARGV: its number, 1 =
 * set it unless a newer one is set. The key holds `number@run`, because a restarted server may have lost its last
 * second, and a promoted replica its last moments. Replies {state, the key's text}; state 1 =
 * valid, 0 = lost, 2 = a newer one is set.
 */
export const epochScript = script(`
local call = redis.call
local run = string.match(call('INFO', 'server'), 'run_id:(%x+)')
local wanted, text = tonumber(ARGV[1]), call('GET', KEYS[1]) or ''
local number, of = string.match(text, '^(%d+)@(%x+)$')
number = tonumber(number) or -1
if number > wanted then return {2, text} end
if number < wanted or of ~= run then
  if ARGV[2] ~= '1' then return {0, text} end
  text = string.format('%.0f', wanted) .. '@' .. run
  call('SET', KEYS[1], text)
end
return {1, text}
`)

/**
 * Runs each command of the meter's scripts on KEYS 1, beginning with one that needs memory: after another write of the
 * same script, a full Redis would accept it. Replies `INFO memory`.
 */
export const checkScript = script(`
local call, key = redis.call, KEYS[1]
call('SET', key, '1')
call('GET', key)
call('DEL', key)
call('HSET', key, 'a', '1')
call('HGET', key, 'a')
call('HMGET', key, 'a')
call('HGETALL', key)
call('HEXISTS', key, 'a')
call('HDEL', key, 'a')
call('ZADD', key, 1, 'a')
call('ZRANGEBYSCORE', key, '-inf', '+inf')
call('ZREM', key, 'a')
call('PEXPIRE', key, 1000)
call('DEL', key)
call('TIME')
return call('INFO', 'memory')
`)

/** What Redis must do to decide limits, on each node of a cluster. */
export const meterChecks = allPartitions.map(partition => ({ script: checkScript, keys: [getKeys(partition).check] }))

/** All scripts of the meter, to be loaded with each new connection. */
export const meterScripts = [
  admitScript,
  settleScript,
  raiseScript,
  loadScript,
  loadScopesScript,
  renewScript,
  dueScript,
  sweepScript,
  epochScript,
]
