/**
 * Redis scripts of a pool's capacity. A pool is one hash: `r:` and `t:` with an account are the times at which its
 * buckets are full again, `p:` when its pause ends (with a model: for that model). Times are Redis' own milliseconds.
 * The rules are those of `core/routing/minute-buckets.ts` and `choose-key.ts`; one test suite covers both.
 */
import { type Script, script } from '../../core/limits/script.ts'

const common = `
local time = redis.call('TIME')
local now = time[1] * 1000 + time[2] / 1000
local minute = 60000
local function used(full) return math.min(minute, math.max(0, full - now)) end
local function stored(value) return string.format('%.3f', value) end
`

/**
 * Keys: the pool's hash, and the set of gateway instances that claimed from it within a minute. Arguments: instance,
 * model, tokens, random number, then account, requests and tokens per minute (0 = not limited), weight and reported
 * share of each option. Returns the index of the claimed option (-1 = none), the milliseconds to wait, and the number
 * of instances.
 */
export const claimScript: Script = script(`${common}
redis.call('ZADD', KEYS[2], now, ARGV[1])
redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', now - minute)
redis.call('PEXPIRE', KEYS[2], minute)
local instances = redis.call('ZCARD', KEYS[2])
local model, tokens, random = ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
local function cost(rate, amount) return math.min(minute, amount * minute / rate) end
local free, wait, best, weights = {}, -1, -1, 0
for at = 5, #ARGV, 5 do
  local account, rpm, tpm = ARGV[at], tonumber(ARGV[at + 1]), tonumber(ARGV[at + 2])
  local state = redis.call('HMGET', KEYS[1], 'r:' .. account, 't:' .. account, 'p:' .. account,
    'p:' .. account .. ' ' .. model)
  local requests, counted = tonumber(state[1] or 0), tonumber(state[2] or 0)
  local missing = math.max(tonumber(state[3] or 0), tonumber(state[4] or 0)) - now
  local share = 1
  if rpm > 0 then
    missing = math.max(missing, used(requests) + cost(rpm, 1) - minute)
    share = math.min(share, 1 - used(requests) / minute)
  end
  if tpm > 0 then
    missing = math.max(missing, used(counted) + cost(tpm, tokens) - minute)
    share = math.min(share, 1 - used(counted) / minute)
  end
  if missing > 0.002 then
    if wait < 0 or missing < wait then wait = missing end
  else
    local step = math.ceil(math.min(share, tonumber(ARGV[at + 4])) * 10)
    if step > best then best, free, weights = step, {}, 0 end
    if step == best then
      local weight = tonumber(ARGV[at + 3])
      free[#free + 1] = { (at - 5) / 5, account, requests, counted, rpm, tpm, weight }
      weights = weights + weight
    end
  end
end
if #free == 0 then return { -1, math.ceil(wait), instances } end
local point, chosen = random * weights, free[#free]
for _, one in ipairs(free) do
  point = point - one[7]
  if point < 0 then chosen = one break end
end
if chosen[5] > 0 then
  redis.call('HSET', KEYS[1], 'r:' .. chosen[2], stored(now + used(chosen[3]) + cost(chosen[5], 1)))
end
if chosen[6] > 0 then
  redis.call('HSET', KEYS[1], 't:' .. chosen[2], stored(now + used(chosen[4]) + cost(chosen[6], tokens)))
end
redis.call('PEXPIRE', KEYS[1], 3600000)
return { chosen[1], 0, instances }
`)

/**
 * Key: the pool's hash. Arguments: account, requests and tokens per minute (0 = not limited), and the requests and
 * tokens to give back; negative = used besides the claims.
 */
export const correctScript: Script = script(`${common}
local function correct(field, rate, amount)
  if rate == 0 or amount == 0 then return end
  local full = tonumber(redis.call('HGET', KEYS[1], field) or 0)
  local after = math.min(minute, math.max(0, used(full) - amount * minute / rate))
  redis.call('HSET', KEYS[1], field, stored(now + after))
end
correct('r:' .. ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[4]))
correct('t:' .. ARGV[1], tonumber(ARGV[3]), tonumber(ARGV[5]))
redis.call('PEXPIRE', KEYS[1], 3600000)
return 0
`)

/** Key: the pool's hash. Arguments: fields of the buckets that are empty. */
export const exhaustScript: Script = script(`${common}
for _, field in ipairs(ARGV) do redis.call('HSET', KEYS[1], field, stored(now + minute)) end
redis.call('PEXPIRE', KEYS[1], 3600000)
return 0
`)

/** Key: the pool's hash. Arguments: account, or account and model, and the milliseconds of the pause. */
export const pauseScript: Script = script(`${common}
local field = 'p:' .. ARGV[1]
local until_ms = math.max(now + tonumber(ARGV[2]), tonumber(redis.call('HGET', KEYS[1], field) or 0))
redis.call('HSET', KEYS[1], field, stored(until_ms))
redis.call('PEXPIRE', KEYS[1], 3600000)
return 0
`)

/** Loaded with the connection: a correction must run before the claim that is sent after it. */
export const keyScripts: readonly Script[] = [claimScript, correctScript, exhaustScript, pauseScript]
