import { expect, setDefaultTimeout, test } from 'bun:test'
import fc from 'fast-check'
import type { UsageRecord } from '../../src/core/usage/usage-record.ts'
import type { Checkpoints } from '../../src/ledger/checkpoints.ts'
import { JournalUnwritable } from '../../src/ledger/journal.ts'
import { createMemoryMeter, type MemoryMeterOptions } from '../../src/limits/memory.ts'
import type { Admission, Meter, Reservation } from '../../src/limits/meter.ts'
import { movableClock } from '../database/support.ts'
import { oneTurn } from '../harness/moved-clock.ts'
import { admitted, meterContract, send, settlement, wide } from './meter.contract.ts'

setDefaultTimeout(60_000)

const settleNow = (meter: Meter, admission: Admission, now: number) =>
  meter.settle(settlement(admitted(admission), 10, 10, now))

function rig(seed: MemoryMeterOptions['seed'] = async () => ({ tokens: 0, microcents: 0 }), checkpoints?: Checkpoints) {
  const written: UsageRecord[] = []
  const clock = movableClock()
  const disk = { full: false, settlements: [] as PromiseWithResolvers<void>[] }
  const journal = {
    async appendTogether(record: UsageRecord) {
      if (disk.full) throw new JournalUnwritable('disk full')
      written.push(record)
    },
    isWritable: () => !disk.full,
    async untilDurable() {
      if (!disk.full) return
      const settlement = Promise.withResolvers<void>()
      disk.settlements.push(settlement)
      await settlement.promise
    },
  }
  const meter = createMemoryMeter({ clock, journal, seed, ...(checkpoints === undefined ? {} : { checkpoints }) })
  return { meter, clock, disk, written, records: async () => written, close: () => meter.close() }
}

meterContract('memory meter', async () => rig())

test("memory meter: loads the day's usage once for any number of concurrent requests", async () => {
  let asked = 0
  const { meter } = rig(async () => {
    asked++
    await oneTurn()
    return { tokens: 999_000, microcents: 5 }
  })
  await Promise.all(['a', 'b', 'c'].map(id => meter.admit(send(id))))
  expect(asked).toBe(1)
  expect(meter.quotaStatus('acc_1', wide)).toMatchObject({ tokens: { remaining: 100 } })
})

test('memory meter: rejects an account whose ledger cannot be read and retries the load', async () => {
  let answers = false
  const { meter } = rig(async () => {
    if (!answers) throw new Error('away')
    return { tokens: 0, microcents: 0 }
  })
  await expect(meter.admit(send('a'))).rejects.toThrow('away')
  answers = true
  expect((await meter.admit(send('a'))).admitted).toBe(true)
})

test('memory meter: rejects requests and delays the end of responses while the journal cannot be written', async () => {
  const { meter, clock, disk } = rig()
  const reservation = admitted(await meter.admit(send('a')))
  const other = admitted(await meter.admit(send('b')))
  disk.full = true
  await expect(meter.admit(send('c'))).rejects.toMatchObject({ code: 'service_unavailable', retryAfterMs: 1000 })
  const [lost, saved] = [reservation, other].map(item => meter.settle(settlement(item, 1, 1, clock.now())))
  // The journal has rejected both by then.
  await oneTurn()
  disk.settlements[0]?.reject(new JournalUnwritable('late'))
  await expect(lost).rejects.toMatchObject({ code: 'service_unavailable' })
  disk.settlements[1]?.resolve()
  await saved
  expect(meter.quotaStatus('acc_1', wide)?.reservations.remaining).toBe(10)
})

test('memory meter: releases an unsettled reservation, and still counts a later settlement', async () => {
  const { meter, clock } = rig()
  const limits = { ...wide, concurrentRequests: 1 }
  const reservation = admitted(await meter.admit(send('a', { limits })))
  clock.move(15 * 60_000)
  admitted(await meter.admit(send('b', { limits })))
  await meter.settle(settlement(reservation, 300, 100, clock.now()))
  const { tokens, reservations } = meter.quotaStatus('acc_1', limits) ?? {}
  expect([tokens?.remaining, reservations?.remaining]).toEqual([wide.dailyTokens - 600, 0])
})

test('memory meter: reads an idle account again after its eviction', async () => {
  const seeded: string[] = []
  const { meter, clock } = rig(async accountId => {
    seeded.push(accountId)
    return { tokens: 0, microcents: 0 }
  })
  const admit = (accountId: string) => meter.admit(send(`${accountId}-${seeded.length}`, { accountId }))
  for (let index = 0; index < 100_000; index++)
    await admit(`acc_${index}`).then(admission => settleNow(meter, admission, clock.now()))
  clock.move(11 * 60_000)
  for (let index = 0; index < 1_000; index++) await admit(`acc_${index}`)
  for (const id of ['one', 'two', 'three']) await admit(id)
  seeded.length = 0
  for (let index = 0; index < 1_000; index++) await admit(`acc_${index}`)
  expect(seeded).toEqual([])
  for (let index = 1_000; index < 3_000; index++) await admit(`acc_${index}`)
  expect(seeded.length).toBeGreaterThan(0)
})

test('memory meter: answers for a known account synchronously', async () => {
  const { meter } = rig()
  await meter.admit(send('a'))
  expect(Bun.peek(meter.admit(send('b')))).toMatchObject({ admitted: true })
})

test('memory meter: stays exact for prices and limits beyond a double', async () => {
  const { meter } = rig()
  const limits = { ...wide, dailyTokens: 10_000_000, dailyCostMicrocents: Number.MAX_SAFE_INTEGER }
  const reservation = admitted(
    await meter.admit(
      send('a', { limits, inputTokens: 3_000_001, outputTokens: 1, inputPrice: 7_500_000_001, outputPrice: 1 }),
    ),
  )
  expect(reservation.reservedMicrocents).toBe(Number((3_000_001n * 7_500_000_001n + 1n + 999_999n) / 1_000_000n))
})

/** A naive meter: everything is recomputed from the list of events. */
type Line = {
  id: string
  at: number
  day: number
  tokens: number
  cost: number
  /** Reserved tokens. */
  reserved: number
  open: boolean
  /** Reservation of an entry with an expired lease; it counts nothing until it is settled. */
  lapsed: { readonly tokens: number; readonly cost: number } | null
}

test('memory meter: matches a naive model in limits, billing and single settlement', async () => {
  const limits = { requestsPerMinute: 4, concurrentRequests: 3, dailyTokens: 3000, dailyCostMicrocents: 3000 }
  const command = fc.oneof(
    fc.record({
      kind: fc.constant('admit' as const),
      id: fc.integer({ min: 0, max: 25 }),
      input: fc.integer({ min: 0, max: 900 }),
      output: fc.integer({ min: 1, max: 900 }),
      choices: fc.integer({ min: 1, max: 3 }),
      fairShare: fc.boolean(),
      inputPrice: fc.integer({ min: 0, max: 3_000_000 }),
      outputPrice: fc.integer({ min: 0, max: 3_000_000 }),
    }),
    fc.record({
      kind: fc.constant('settle' as const),
      id: fc.integer({ min: 0, max: 25 }),
      tokens: fc.nat(3000),
      cost: fc.nat(3000),
    }),
    fc.record({
      kind: fc.constant('raise' as const),
      id: fc.integer({ min: 0, max: 25 }),
      tokens: fc.nat(3000),
      cost: fc.nat(3000),
    }),
    fc.record({
      kind: fc.constant('move' as const),
      by: fc.oneof(fc.nat(40_000), fc.constantFrom(600_000, 43_200_000)),
    }),
  )
  await fc.assert(
    fc.asyncProperty(fc.array(command, { maxLength: 80, size: 'max' }), async commands => {
      const { meter, clock, written } = rig()
      const lines: Line[] = []
      const reservations = new Map<string, Reservation>()
      const getDay = (time: number) => Math.floor(time / 86_400_000)
      const used = (day: number) =>
        lines
          .filter(line => line.day === day)
          .reduce((sum, line) => ({ tokens: sum.tokens + line.tokens, cost: sum.cost + line.cost }), {
            tokens: 0,
            cost: 0,
          })
      const taken = () => lines.filter(line => line.open && line.lapsed === null).length
      for (const step of commands) {
        const now = clock.now()
        if (step.kind === 'move') {
          clock.move(step.by)
          continue
        }
        const id = `r${step.id}`
        const line = lines.find(item => item.id === id)
        if (step.kind === 'admit') {
          const answer = await meter.admit(
            send(id, {
              limits,
              inputTokens: step.input,
              outputTokens: step.output,
              choices: step.choices,
              fairShare: step.fairShare,
              inputPrice: step.inputPrice,
              outputPrice: step.outputPrice,
            }),
          )
          if (line !== undefined) {
            expect(answer.admitted).toBe(true)
            continue
          }
          for (const item of lines)
            if (item.open && item.lapsed === null && item.at <= now - 900_000)
              Object.assign(item, { lapsed: { tokens: item.tokens, cost: item.cost }, tokens: 0, cost: 0 })
          const before = used(getDay(now))
          const price = (cap: number) =>
            Math.ceil((step.input * step.inputPrice + cap * step.choices * step.outputPrice) / 1_000_000)
          const expected =
            lines.filter(item => item.at > now - 60_000).length >= limits.requestsPerMinute
              ? 'requests_per_minute_exceeded'
              : taken() >= limits.concurrentRequests
                ? 'concurrent_requests_exceeded'
                : before.tokens + step.input + step.choices > limits.dailyTokens
                  ? 'daily_tokens_exceeded'
                  : before.cost + price(1) > limits.dailyCostMicrocents
                    ? 'daily_cost_exceeded'
                    : null
          expect(answer.admitted ? null : answer.code).toBe(expected)
          if (!answer.admitted) continue
          const { reservation } = answer
          expect(reservation.outputCap).toBeGreaterThanOrEqual(1)
          expect(reservation.outputCap).toBeLessThanOrEqual(step.output)
          expect(reservation.reservedMicrocents).toBe(price(reservation.outputCap))
          const isLargest =
            reservation.outputCap === step.output ||
            before.tokens + step.input + (reservation.outputCap + 1) * step.choices > limits.dailyTokens ||
            before.cost + price(reservation.outputCap + 1) > limits.dailyCostMicrocents
          if (!step.fairShare) expect(isLargest).toBe(true)
          reservations.set(id, reservation)
          lines.push({
            id,
            at: now,
            day: reservation.day,
            tokens: reservation.reservedTokens,
            cost: reservation.reservedMicrocents,
            reserved: reservation.reservedTokens,
            open: true,
            lapsed: null,
          })
        } else {
          const reservation = reservations.get(id)
          if (reservation === undefined || line === undefined) continue
          if (step.kind === 'raise') {
            const raised = await meter.raise(reservation, step.tokens, step.cost)
            const rest = used(line.day)
            const tokens = Math.max(line.tokens, step.tokens)
            const cost = Math.max(line.cost, step.cost)
            const fits =
              rest.tokens - line.tokens + tokens <= limits.dailyTokens &&
              rest.cost - line.cost + cost <= limits.dailyCostMicrocents &&
              getDay(now) === line.day
            expect(raised !== null).toBe(line.open && line.lapsed === null && fits)
            if (raised !== null) {
              reservations.set(id, raised)
              Object.assign(line, { tokens, cost, reserved: tokens })
            }
          } else {
            await meter.settle(settlement(reservation, step.tokens, step.cost, now))
            if (line.open)
              Object.assign(line, {
                tokens: step.tokens,
                cost: Math.min(step.cost, (line.lapsed ?? line).cost),
                open: false,
              })
          }
        }
        const today = used(getDay(now))
        // An expired reservation was granted to others, and counts again if it is settled later.
        if (lines.every(item => item.lapsed === null)) {
          const isOverReservation = lines.some(item => !item.open && item.tokens > item.reserved)
          if (!isOverReservation) expect(today.tokens).toBeLessThanOrEqual(limits.dailyTokens)
          expect(today.cost).toBeLessThanOrEqual(limits.dailyCostMicrocents)
        }
        const quotaStatus = meter.quotaStatus('acc_1', limits)
        if (quotaStatus !== null) {
          expect(quotaStatus.tokens.remaining).toBe(Math.max(0, limits.dailyTokens - today.tokens))
          expect(quotaStatus.costMicrocents.remaining).toBe(Math.max(0, limits.dailyCostMicrocents - today.cost))
          expect(quotaStatus.reservations.remaining).toBe(limits.concurrentRequests - taken())
        }
      }
      expect(new Set(written.map(record => record.request_id)).size).toBe(written.length)
      expect(written.length).toBe(lines.filter(line => !line.open).length)
      for (const record of written) expect(record.billed_microcents).toBeLessThanOrEqual(record.reserved_microcents)
    }),
    { numRuns: 300 },
  )
})
