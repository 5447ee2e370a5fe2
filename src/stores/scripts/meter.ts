/**
 * The meter's Lua, run inside Redis: one step each, whatever else is going on. Here is what gateways do beside their requests;
 * `account.ts` says what the fields are.
 */
import { script } from '../redis.ts'
import { common, expire, guard, knowing, renewEpoch, settleAfterAll } from './account.ts'
import { admitScript, raiseScript, settleScript } from './requests.ts'

/**
 * KEYS 3: the set of accounts with checkpoints. ARGV 3…: lease in ms, account id, gateway id, then pairs of an id and its
 * checkpoint (`tokens:cost:record`, empty = none that is new). Leases that are gone stay gone. Replies {1} or {-1}.
 */
export const renewScript = script(`${common}${guard}
if call('HGET', account, 'e') ~= epoch then return {-1} end
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
 * KEYS 1: the set of accounts with checkpoints. ARGV 1: the time (empty = the server's own). Replies those of which a lease
 * may have run out, a hundred at most; whoever asks within a second is not told them too.
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
 * Takes back what ran out on an account that nobody asks about. KEYS 4: the set of accounts with checkpoints. ARGV 3…:
 * account id, and the gateways that are alive (none = not known). Where Redis does not decide, or not under the caller's
 * epoch, only what dead gateways have left is settled.
 */
export const sweepScript = script(`${common}${knowing}${renewEpoch}
local y, t, c, s, z, n, x
${expire}
local decides = epoch ~= '' and call('GET', KEYS[2]) == epoch
local known = call('HGET', account, 'e')
if decides and known and known ~= epoch then renewEpoch() end
local has = call('HMGET', account, 'e', 'm')
y, t, c, s, z, n, x = countersOf(has[2])
if has[1] and decides then
  expire()
elseif has[1] and #ARGV > 3 then
  local living = {}
  for i = 4, #ARGV do living[ARGV[i]] = true end
  expire(living)
end
if x > 0 then call('ZADD', KEYS[4], whole(max(x, now + 1000)), ARGV[3]) else call('ZREM', KEYS[4], ARGV[3]) end
return {1}
`)

/**
 * A request that was settled to its checkpoint, and of which the ledger has the end: its account's counters get the difference,
 * once. ARGV 3…: id, tokens, cost. Under no epoch of the caller's: counters that are to begin with the ledger find it there.
 */
export const correctScript = script(`${common}${knowing}
local has = call('HMGET', account, 'e', 'm')
local y, t, c, s, z, n, x = countersOf(has[2])
if has[1] ~= call('GET', KEYS[2]) then y = -1 end
${settleAfterAll}
settleAfterAll(ARGV[3], tonumber(ARGV[4]), tonumber(ARGV[5]))
return {1}
`)

/**
 * What one gateway knows of an account, under an epoch that is being made (KEYS 2: its announcement). ARGV 3…: lease in
 * ms, and JSON: `gateway`, `leases` [id, tokens, cost, cap, day], `ages` of the last minute's admissions in ms, oldest first,
 * `waiting` [id, tokens, cost, day, 1 = final], `settled` [day, tokens, cost] of what it settled without Redis (empty = nothing). Of this gateway's leases those not named are gone, and those named are as new; one that
 * was settled to its checkpoint meanwhile stays so. Safe to repeat but for `ages`, which then count twice: never over.
 */
export const registerScript = script(`${common}${knowing}${renewEpoch}
if call('HGET', KEYS[2], 'id') ~= epoch then return {-1} end
local known = cjson.decode(ARGV[4])
if call('HGET', account, 'e') ~= epoch then renewEpoch() end
local expiry = whole(now + tonumber(ARGV[3]))
local y, t, c, s, z, n, x = countersOf(call('HGET', account, 'm'))
local open = {}
for _, lease in ipairs(known.leases) do open[lease[1]] = true end
local all = call('HGETALL', account)
for i = 1, #all, 2 do
  local id = sub(all[i], 3)
  if sub(all[i], 1, 2) == 'o:' and all[i + 1] == known.gateway and not open[id] then
    n = n - call('HDEL', account, 'l:' .. id)
    call('HDEL', account, all[i], 'p:' .. id)
  end
end
for _, lease in ipairs(known.leases) do
  local id = lease[1]
  if not match(call('HGET', account, 'g:' .. id) or '', ':1$') then
    n = n + call('HSET', account, 'l:' .. id, expiry .. ':' .. whole(lease[2]) .. ':' .. whole(lease[3]) .. ':' .. whole(lease[4]) .. ':' .. whole(lease[5]))
    call('HDEL', account, 'g:' .. id)
  end
end
if #known.ages > 0 then
  local times, log = {}, call('HGET', account, 'a') or ''
  for at = 1, #log, 4 do times[#times + 1] = now - (now - unpack_('<I4', log, at)) % 4294967296 end
  for _, age in ipairs(known.ages) do times[#times + 1] = now - age end
  table.sort(times)
  for i, time in ipairs(times) do times[i] = pack('<I4', time % 4294967296) end
  call('HSET', account, 'a', table.concat(times))
end
for _, used in ipairs(known.waiting) do
  if call('HDEL', account, 'l:' .. used[1]) == 1 then n = n - 1 end
  call('HDEL', account, 'p:' .. used[1], 'o:' .. used[1])
  -- Another gateway may know how it ended.
  if used[5] == 1 or not match(call('HGET', account, 'u:' .. used[1]) or '', ':1$') then
    call('HSET', account, 'u:' .. used[1], whole(used[2]) .. ':' .. whole(used[3]) .. ':' .. whole(used[4]) .. ':' .. whole(used[5]))
  end
end
if #known.settled > 0 then
  call('HSET', account, 'd:' .. known.gateway, whole(known.settled[1]) .. ':' .. whole(known.settled[2]) .. ':' .. whole(known.settled[3]))
end
expiry = tonumber(expiry)
setCounters(y, t, c, s, z, n, x > 0 and min(x, expiry) or expiry)
call('PEXPIRE', account, keepMs)
return {1}
`)

/**
 * What one gateway knows to be settled of accounts of a partition, ahead of an epoch that is being made. KEYS are their hashes
 * and the announcement. ARGV 3…: of each `day:tokens:cost`. Replies {1} or {-1}.
 */
export const remindScript = script(`${common}${knowing}
if call('HGET', KEYS[#KEYS], 'id') ~= epoch then return {-1} end
for i = 1, #KEYS - 1 do
  call('HSET', KEYS[i], 'k', most(call('HGET', KEYS[i], 'k'), ARGV[i + 2]))
  call('PEXPIRE', KEYS[i], keepMs)
end
return {1}
`)

/**
 * One gateway's sign of life in a partition. KEYS: epoch, gateways, announcement of the next epoch, usage stream. ARGV 3…: gateway id, a name for a next epoch, the epoch it has registered for ('' = none),
 * 1 = the present epoch must go (it handed out without Redis), gateways that it waits for (comma-separated), how long a
 * rebuild runs before gateways register, and how long it waits for silent ones, in ms.
 *
 * Replies {state, epoch, oldest entry id or '', gateways alive (comma-separated)}; state 1 = the epoch
 * stands, 0 = one is to be made, 2 = register for it now.
 */
export const beatScript = script(`${common}
local gateways, announced = KEYS[2], KEYS[3]
local me, minimum, patience = ARGV[3], tonumber(ARGV[8]), tonumber(ARGV[9])
-- A server that was restarted may have forgotten its last second, and a replica that took over its last moments.
local run = match(call('INFO', 'server'), 'run_id:(%x+)')
local stands = call('GET', KEYS[1])
if stands and (match(stands, '@(%x+)$') ~= run or ARGV[6] == '1') then
  call('DEL', KEYS[1])
  stands = false
end
call('HSET', gateways, me, whole(now))
local alive, all = {}, call('HGETALL', gateways)
for i = 1, #all, 2 do
  local age = now - tonumber(all[i + 1])
  if age < 3000 then alive[#alive + 1] = all[i] elseif age > 60000 then call('HDEL', gateways, all[i]) end
end
local state, name = 1, stands
if not stands then
  name = call('HGET', announced, 'id')
  if not name or match(name, '@(%x+)$') ~= run then
    name = ARGV[4] .. '@' .. run
    call('DEL', announced)
    call('HSET', announced, 'id', name, 'since', whole(now))
  end
  if ARGV[5] == name then call('HSET', announced, 'g:' .. me, 1) end
  local age = now - tonumber(call('HGET', announced, 'since'))
  state = age >= minimum and 2 or 0
  local complete = state == 2
  local awaited = table.concat(alive, ',')
  if age < patience then awaited = awaited .. ',' .. ARGV[7] end
  for gateway in string.gmatch(awaited, '[^,]+') do
    if call('HEXISTS', announced, 'g:' .. gateway) == 0 then complete = false end
  end
  if complete then
    call('SET', KEYS[1], name)
    call('DEL', announced)
    state = 1
  end
end
local oldest = call('XRANGE', KEYS[4], '-', '+', 'COUNT', 1)
return {state, name, oldest[1] and oldest[1][1] or '', table.concat(alive, ',')}
`)

export const meterScripts = [
  admitScript,
  settleScript,
  raiseScript,
  renewScript,
  dueScript,
  sweepScript,
  correctScript,
  registerScript,
  remindScript,
  beatScript,
]
