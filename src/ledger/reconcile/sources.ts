import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { counterFormat, getKeys, getPartition, script } from '../../core/limits/redis.ts'
import type { UsageRecord } from '../../core/usage/usage-record.ts'
import type { Redis } from '../../database/redis.ts'
import { decodeLine } from '../journal.ts'
import type { Counted, UsageSource } from '../reconcile.ts'

/**
 * Reads the journal of one gateway while it runs. Its counters are in its memory, initialized from the ledger and this
 * journal.
 */
export function journalSource(directory: string) {
  return {
    keepsCounters: false,
    async read() {
      const names = existsSync(directory) ? readdirSync(directory) : []
      const segments = names.filter(name => /^\d{12}\.log$/.test(name)).map(name => readLines(join(directory, name)))
      const aside = readLines(join(directory, 'refused.log'))
      return {
        counted: [],
        waiting: segments.flatMap(segment => segment.records),
        refused: aside.records,
        damagedLines: [...segments, aside].reduce((sum, item) => sum + item.damaged, 0),
      }
    },
  } satisfies UsageSource
}

/** Reads a journal file in its current state: its writer may be at the last line, and its shipper may delete it. */
function readLines(path: string): { readonly records: UsageRecord[]; readonly damaged: number } {
  const records: UsageRecord[] = []
  let damaged = 0
  const bytes = readIfThere(path)
  for (let start = 0, end = bytes.indexOf(0x0a); end !== -1; start = end + 1, end = bytes.indexOf(0x0a, start)) {
    const record = decodeLine(bytes.subarray(start, end))
    if (record === null) damaged++
    else records.push(record)
  }
  return { records, damaged }
}

function readIfThere(path: string): Uint8Array {
  try {
    return readFileSync(path)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return new Uint8Array()
    throw error
  }
}

const deadlineMs = 2_000
const accountsAtOnce = 200

/** Reads the counters of all gateway instances on one Redis. Throws `RedisUnavailableError`. */
export function redisSource(redis: Redis): UsageSource {
  return {
    keepsCounters: true,
    async read(accountIds) {
      const counted: Counted[] = []
      for (const [partition, own] of Map.groupBy(accountIds, getPartition))
        for (let at = 0; at < own.length; at += accountsAtOnce)
          counted.push(...(await readCounters(redis, partition, own.slice(at, at + accountsAtOnce))))
      return { counted, waiting: [], refused: [], damagedLines: 0 }
    },
  }
}

/**
 * KEYS: a partition's epoch, then accounts of it. Replies for each account {y, t, c}, the counters without reservations
 * of open leases, or {} if there are none under this epoch.
 */
const readingScript = script(`
local epoch = redis.call('GET', KEYS[1])
local reply = {}
for i = 2, #KEYS do
  local has = redis.call('HMGET', KEYS[i], 'e', 'm')
  local counted = {}
  local y, t, c = -1, 0, 0
  if has[2] and has[1] == epoch then y, t, c = struct.unpack('${counterFormat}', has[2]) end
  if y ~= -1 then
    local all = redis.call('HGETALL', KEYS[i])
    for at = 1, #all, 2 do
      if string.sub(all[at], 1, 2) == 'l:' then
        local tokens, cost, day = string.match(all[at + 1], '^%d+:(%d+):(%d+):%d+:(%d+)$')
        if tonumber(day) == y then t, c = t - tonumber(tokens), c - tonumber(cost) end
      end
    end
    counted = {y, string.format('%.0f', t), string.format('%.0f', c)}
  end
  reply[#reply + 1] = counted
end
return reply
`)

async function readCounters(redis: Redis, partition: number, accountIds: readonly string[]): Promise<Counted[]> {
  const keys = getKeys(partition)
  const reply = await redis.evaluate(readingScript, [keys.epoch, ...accountIds.map(keys.account)], [], deadlineMs)
  return (reply as string[][]).flatMap(([day, tokens, microcents], index): Counted[] => {
    const accountId = accountIds[index]
    if (day === undefined || accountId === undefined) return []
    return [{ accountId, day: Number(day), tokens: Number(tokens), microcents: Number(microcents) }]
  })
}
