import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { type LimitKeys, script } from '../../core/limits/redis.ts'
import { systemErrorCode } from '../../core/validation/errors.ts'
import type { Redis } from '../../database/redis.ts'
import type { Counted, UsageSource } from '../reconcile.ts'
import { readRecords } from '../record-lines.ts'

/**
 * Reads the journal of one gateway while it runs. Its counters are in its memory, initialized from the ledger and this
 * journal.
 */
export function journalSource(directory: string) {
  return {
    keepsCounters: false,
    async read() {
      const names = existsSync(directory) ? readdirSync(directory) : []
      let damagedLines = 0
      const read = (name: string) => {
        try {
          return readRecords(join(directory, name), () => damagedLines++)
        } catch (error) {
          // Its shipper has deleted it, or nothing was set aside.
          if (systemErrorCode(error) === 'ENOENT') return []
          throw error
        }
      }
      const waiting = names.filter(name => /^\d{12}\.log$/.test(name)).flatMap(read)
      const refused = read('refused.log')
      return { counted: [], waiting, refused, damagedLines }
    },
  } satisfies UsageSource
}

const deadlineMs = 2_000
const accountsAtOnce = 200

/** Reads the counters of all gateway instances on one Redis. Throws `RedisUnavailableError`. */
export function redisSource(redis: Redis, keys: LimitKeys): UsageSource {
  const readCounters = async (partition: number, accountIds: readonly string[]): Promise<Counted[]> => {
    const names = [keys.state(partition), ...accountIds.map(keys.account)]
    const reply = await redis.evaluate(readingScript, names, [], deadlineMs)
    return (reply as string[][]).flatMap(([day, tokens, microcents], index): Counted[] => {
      const accountId = accountIds[index]
      if (day === undefined || accountId === undefined) return []
      return [{ accountId, day: Number(day), tokens: Number(tokens), microcents: Number(microcents) }]
    })
  }
  return {
    keepsCounters: true,
    async read(accountIds) {
      const counted: Counted[] = []
      for (const [partition, own] of Map.groupBy(accountIds, keys.partition))
        for (let at = 0; at < own.length; at += accountsAtOnce)
          counted.push(...(await readCounters(partition, own.slice(at, at + accountsAtOnce))))
      return { counted, waiting: [], refused: [], damagedLines: 0 }
    },
  }
}

/**
 * KEYS: a partition's state, then accounts of it (`limits/redis-common.ts`). Replies for each account {day, tokens, cost}
 * without open reservations and allowances, or {} if its counters are lost.
 */
const readingScript = script(`
local call = redis.call
local generation, reply = call('HGET', KEYS[1], 'g'), {}
for i = 2, #KEYS do
  local has, counted = call('HMGET', KEYS[i], 'g', 'day', 'tokens', 'cost'), {}
  if generation and has[1] == generation then
    local all, tokens, cost = call('HGETALL', KEYS[i]), has[3] - 0, has[4] - 0
    for at = 1, #all, 2 do
      local ofTokens, ofCost, day = string.match(all[at + 1], '^(%d+):(%d+):%d+:(%d+):')
      if string.sub(all[at], 1, 2) == 'l:' and day == has[2] then tokens, cost = tokens - ofTokens, cost - ofCost end
    end
    local held = call('HGETALL', KEYS[i] .. ':held')
    for at = 2, #held, 2 do
      local ofTokens, ofCost = string.match(held[at], '^(%d+):(%d+):')
      tokens, cost = tokens - ofTokens, cost - ofCost
    end
    counted = {has[2], string.format('%.0f', tokens), string.format('%.0f', cost)}
  end
  reply[#reply + 1] = counted
end
return reply
`)
