/**
 * The parts of the scripts that count scopes: a key and tags with limits of their own (`core/limits/scopes.ts`). They are
 * fields of the account's hash, so that one script decides on all of them:
 *
 * A scope is named as by `getCounterName`: with the time since when it has limits.
 *
 *   q:<scope>  its counters, nine packed doubles: y t c s z n as of the account, and of the month w: m cost with
 *              reservations, v what is settled of it
 *   r:<scope>  its admissions of the last minute, if they are limited: pairs of a time and a number. Exact up to 100 per
 *              minute; above, one pair per second with its latest time, never over the limit and at most 1 s late
 *   k:<id>     the names of a request's scopes, one per line, until its end is known
 *
 * A request without scopes reads and writes none of them.
 */
import { scopeFormat } from '../../core/limits/redis.ts'

/** Returns the months since March of year 0 for a day: only its equality and order matter. */
const monthTable = `
local function monthOf(day)
  local days = day + 719468
  local era = math.floor(days / 146097)
  local inEra = days - era * 146097
  local year = math.floor((inEra - math.floor(inEra / 1460) + math.floor(inEra / 36524) - math.floor(inEra / 146096)) / 365)
  local inYear = inEra - (365 * year + math.floor(year / 4) - math.floor(year / 100))
  return (year + era * 400) * 12 + math.floor((5 * inYear + 2) / 153)
end
`

/**
 * Reads and starts a new day or month of a scope: a list of its counters, or nothing. Requires `account`, `call` and
 * `unpack_`.
 */
const readScope = `
${monthTable}
local function readScope(name, today)
  local text = call('HGET', account, 'q:' .. name)
  if not text then return end
  local one = {unpack_('${scopeFormat}', text)}
  if one[1] < today then
    one[1], one[2], one[3], one[4], one[5] = today, 0, 0, 0, 0
    local month = monthOf(today)
    if one[7] < month then one[7], one[8], one[9] = month, 0, 0 end
  end
  return one
end
local function writeScope(name, one)
  call('HSET', account, 'q:' .. name, struct.pack('${scopeFormat}', unpack(one, 1, 9)))
end
`

/** Adds a change of a request to the scopes that its field names: all amounts of its day, and open requests. */
export const countScopes = `
${readScope}
local function countScopes(id, leaseDay, tokens, cost, usedTokens, usedCost, open)
  local names = call('HGET', account, 'k:' .. id)
  if not names then return end
  for name in string.gmatch(names, '[^\\n]+') do
    local one = readScope(name, 0)
    if one then
      if leaseDay - one[1] == 0 then
        one[2], one[3], one[4], one[5] = one[2] + tokens, one[3] + cost, one[4] + usedTokens, one[5] + usedCost
      end
      one[6] = one[6] + open
      if monthOf(leaseDay) == one[7] then one[8], one[9] = one[8] + cost, one[9] + usedCost end
      writeScope(name, one)
    end
  end
end
`

/**
 * Reads the scopes of an admission from ARGV 14… (name, limits of requests, concurrent requests, tokens, cost, cost of the
 * month; empty = unlimited) into `scopes`, and narrows what is left. Replies {-2, day} if one is not loaded.
 */
export const readScopes = `
  ${readScope}
  scopes = {}
  for at = 14, #ARGV, 6 do
    local name, place = ARGV[at], #scopes + 1
    local one = readScope(name, y)
    if not one then return {-2, y} end
    one.name = name
    local limit = tonumber(ARGV[at + 1])
    if limit then
      local log, first, requests = call('HGET', account, 'r:' .. name) or '', 1, 0
      for pair = 1, #log, 12 do
        local time, number = unpack_('<dI4', log, pair)
        if now - time >= 60000 then first = pair + 12 else requests = requests + number end
      end
      log = string.sub(log, first)
      one.log, one.isMerged = log, limit > 100
      if requests >= limit and not fullRequests then
        fullRequests, requestsWait = place, 60000
        for pair = 1, limit > 0 and #log or 0, 12 do
          local time, number = unpack_('<dI4', log, pair)
          requests, requestsWait = requests - number, time + 60000 - now
          if requests < limit then break end
        end
      end
    end
    limit = tonumber(ARGV[at + 2])
    if limit and one[6] >= limit and not fullSeats then fullSeats = place end
    limit = tonumber(ARGV[at + 3])
    if limit and limit - one[2] < leftTokens then leftTokens, leastTokens = limit - one[2], place end
    limit = tonumber(ARGV[at + 4])
    if limit and limit - one[3] < leftCost then leftCost, leastCost, costCode = limit - one[3], place, 5 end
    limit = tonumber(ARGV[at + 5])
    if limit and limit - one[8] < leftCost then leftCost, leastCost, costCode = limit - one[8], place, 6 end
    scopes[place] = one
  end
`

/** Adds an admitted request to its `scopes`. */
export const reserveInScopes = `
  local names = {}
  for place, one in ipairs(scopes) do
    local name, log = one.name, one.log
    names[place] = name
    one[2], one[3], one[6], one[8] = one[2] + tokens, one[3] + total, one[6] + 1, one[8] + total
    call('HSET', account, 'q:' .. name, struct.pack('${scopeFormat}', unpack(one, 1, 9)))
    if log then
      local number = 1
      if one.isMerged and log ~= '' then
        local time, before = unpack_('<dI4', log, #log - 11)
        if time - time % 1000 == now - now % 1000 then log, number = string.sub(log, 1, #log - 12), before + 1 end
      end
      call('HSET', account, 'r:' .. name, log .. struct.pack('<dI4', now, number))
    end
  end
  call('HSET', account, 'k:' .. ARGV[3], table.concat(names, '\\n'))
`

/** Checks an increase against the limits in ARGV 8… (name, tokens, cost, cost of the month), then adds it. */
export const raiseInScopes = `
  ${readScope}
  local scopes = {}
  for at = 8, #ARGV, 4 do
    local one = readScope(ARGV[at], y)
    if not one then return {0} end
    one.name = ARGV[at]
    one[2], one[3], one[8] = one[2] + moreTokens, one[3] + moreCost, one[8] + moreCost
    local limitTokens, limitCost, limitMonth = tonumber(ARGV[at + 1]), tonumber(ARGV[at + 2]), tonumber(ARGV[at + 3])
    if limitTokens and one[2] > limitTokens or limitCost and one[3] > limitCost or limitMonth and one[8] > limitMonth then
      return {0}
    end
    scopes[#scopes + 1] = one
  end
  for _, one in ipairs(scopes) do writeScope(one.name, one) end
`

/**
 * For the load of an account: `addScopes` adds a reservation or usage to scopes that `known` lists, and
 * `writeScopes` stores them.
 */
export const loadedScopes = `
${readScope}
local month = monthOf(known.day)
local loaded, minutes, listedAs = {}, {}, {}
for _, row in ipairs(known.scopes or {}) do
  local name = row[1] .. '@' .. whole(row[5])
  loaded[name] = {known.day, row[2], row[3], row[2], row[3], 0, month, row[4], row[4]}
  minutes[name] = {}
  -- Keys of one lineage may have got limits at different times.
  listedAs[row[1]] = listedAs[row[1]] or {}
  table.insert(listedAs[row[1]], name)
end
local function counterNames(names)
  local all = {}
  for _, name in ipairs(names) do
    for _, one in ipairs(listedAs[name] or {}) do all[#all + 1] = one end
  end
  return all
end
local function addScopes(names, leaseDay, tokens, cost, isOpen, admitted)
  for _, name in ipairs(names) do
    local one = loaded[name]
    if one then
      local settled = isOpen and 0 or 1
      if leaseDay == known.day then
        one[2], one[3] = one[2] + tokens, one[3] + cost
        one[4], one[5] = one[4] + tokens * settled, one[5] + cost * settled
      end
      if monthOf(leaseDay) == month then one[8], one[9] = one[8] + cost, one[9] + cost * settled end
      if isOpen then one[6] = one[6] + 1 end
      if admitted then table.insert(minutes[name], admitted) end
    end
  end
end
local function mergeScopes(all)
  for name, one in pairs(loaded) do
    local text = all['q:' .. name]
    if text then
      -- As for the account: what Redis had settled of the day and of the month only grows.
      local had = {unpack_('${scopeFormat}', text)}
      if had[1] == one[1] then
        one[2], one[3] = one[2] + max(0, had[4] - one[4]), one[3] + max(0, had[5] - one[5])
        one[4], one[5] = max(one[4], had[4]), max(one[5], had[5])
      end
      if had[7] == one[7] then one[8], one[9] = one[8] + max(0, had[9] - one[9]), max(one[9], had[9]) end
    end
  end
end
local function writeScopes()
  for name, one in pairs(loaded) do
    writeScope(name, one)
    local times, log = minutes[name], {}
    table.sort(times)
    for place, time in ipairs(times) do log[place] = struct.pack('<dI4', time, 1) end
    if #log > 0 then call('HSET', account, 'r:' .. name, table.concat(log)) end
  end
end
`

/** Stores scopes that are new in Redis. ARGV 3: JSON with `day` and `rows` (name, tokens, cost, cost of the month). */
export const newScopes = `
${readScope}
local known = cjson.decode(ARGV[3])
for _, row in ipairs(known.rows) do
  if call('HEXISTS', account, 'q:' .. row[1]) == 0 then
    writeScope(row[1], {known.day, row[2], row[3], row[2], row[3], 0, monthOf(known.day), row[4], row[4]})
  end
end
return {1}
`
