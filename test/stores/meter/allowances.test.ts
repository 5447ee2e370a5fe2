import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { GatewayError } from '../../../src/core/errors.ts'
import { createAllowances } from '../../../src/stores/meter/allowances.ts'
import { type Amounts, type Claim, type Claims, each, granted, noAmounts } from '../../../src/stores/meter/claims.ts'
import type { Seat } from '../../../src/stores/meter.ts'
import { createLocalMeter } from '../../../src/stores/meter-local.ts'
import { ask } from '../meter.contract.ts'
import { movableClock, noClaims } from '../support.ts'

const limits = { requestsPerMinute: 30, concurrentRequests: 30, dailyTokens: 900, dailyCostMicrocents: 9_000 }
const gateways = 3

/** One gateway that decides on claims alone. What it claims arrives, and is answered, when `crossing` says. */
function rig(index: number, table: Amounts[], crossing: <T>(value: T) => Promise<T>, tickMs = 0.01) {
  const clock = movableClock()
  let time = 0
  const local = createLocalMeter({
    clock,
    journal: { appendTogether: async () => {}, isWritable: () => true, untilDurable: async () => {} },
    seed: async () => ({ tokens: 0, microcents: 0 }),
    allowed: (accountId, all) => allowances.allowed(accountId, all),
  })
  const out = (): Amounts => {
    const seats = local.seatsOf('acc_1')
    const sum = (of: (seat: Seat) => number) => seats.reduce((total, { seat }) => total + of(seat), 0)
    return {
      tokens: sum(seat => seat.reservedTokens),
      microcents: sum(seat => seat.reservedMicrocents),
      seats: seats.length,
      requests: seats.length,
    }
  }
  const claims: Claims = {
    ...noClaims,
    async claim(_, all: readonly Claim[]) {
      await crossing(null)
      const claimed = all.map(claim => {
        const others = table.filter((_row, other) => other !== index)
        const elsewhere = each(one => others.reduce((total, row) => total + row[one], 0))
        const given = granted(claim, elsewhere, claim.out, gateways)
        table[index] = given.mine
        return given
      })
      return crossing(claimed)
    },
  }
  const allowances = createAllowances({
    claims,
    authority: { isWithout: () => true, readiness: () => 'ready' },
    leave: async () => {},
    local,
    clock: { now: clock.now, monotonic: () => ++time * tickMs },
    partitionOf: () => 0,
    outOf: accounts =>
      accounts.map(accountId => ({ accountId, day: Math.floor(clock.now() / 86_400_000), out: out(), waiting: [] })),
    gatewaysOf: () => gateways,
    baseOf: () => null,
    deciding: () => {},
    onTrouble: detail => {
      throw new Error(detail)
    },
  })
  return {
    open: () => local.open('acc_1'),
    async admit(requestId: string, inputTokens: number, inputPrice: number) {
      const price = inputPrice * 1_000_000
      await allowances.admit(
        ask(requestId, { limits, inputTokens, outputTokens: 1, inputPrice: price, outputPrice: 0 }),
      )
    },
    out,
    close: () => allowances.close(),
  }
}

test('where a claim is over by the time it arrives nothing is handed out on it: to be asked again', async () => {
  const gateway = rig(0, [noAmounts], async value => value, 3_000)
  await gateway.open()
  await expect(gateway.admit('r1', 10, 1)).rejects.toMatchObject({ code: 'service_unavailable' })
  expect(gateway.out()).toEqual(noAmounts)
  gateway.close()
})

test('however admissions and claims cross, gateways together hand out no more than there is', async () => {
  const step = fc.oneof(
    fc.record({
      kind: fc.constant('admit' as const),
      gateway: fc.nat(gateways - 1),
      inputTokens: fc.constantFrom(1, 1, 1, 40, 200),
      inputPrice: fc.constantFrom(0, 1, 10),
    }),
    fc.record({ kind: fc.constant('cross' as const) }),
  )
  await fc.assert(
    fc.asyncProperty(
      fc.scheduler(),
      fc.array(step, { minLength: 40, maxLength: 160, size: 'max' }),
      async (scheduler, steps) => {
        const table = Array.from({ length: gateways }, () => noAmounts)
        const crossing = <T>(value: T) => scheduler.schedule(Promise.resolve(value))
        const all = table.map((_, index) => rig(index, table, crossing))
        await Promise.all(all.map(one => one.open()))
        const asked: Promise<void>[] = []
        for (const [index, one] of steps.entries()) {
          if (one.kind === 'admit')
            asked.push(all[one.gateway]?.admit(`r${index}`, one.inputTokens, one.inputPrice) ?? Promise.resolve())
          else if (scheduler.count() > 0) await scheduler.waitOne()
          await Bun.sleep(0)
        }
        await scheduler.waitFor(Promise.all(asked))
        for (const one of all) one.close()
        const sum = each(name => all.reduce((total, gateway) => total + gateway.out()[name], 0))
        expect(sum.requests).toBeLessThanOrEqual(limits.requestsPerMinute)
        expect(sum.seats).toBeLessThanOrEqual(limits.concurrentRequests)
        expect(sum.tokens).toBeLessThanOrEqual(limits.dailyTokens)
        expect(sum.microcents).toBeLessThanOrEqual(limits.dailyCostMicrocents)
      },
    ),
    { numRuns: 50 },
  )
}, 30_000)

test('a claim that comes out smaller than what was held before has not been handed out of meanwhile', async () => {
  const table = [noAmounts, noAmounts, noAmounts]
  const held: (() => void)[] = []
  let isHolding = false
  const crossing = <T>(value: T) =>
    isHolding ? new Promise<T>(done => held.push(() => done(value))) : Promise.resolve(value)
  const turns = () => Bun.sleep(1)
  const gateway = rig(0, table, crossing)
  await gateway.open()
  await gateway.admit('first', 1, 0)
  expect(table[0]?.requests).toBe(5)
  // Others have nearly all the rest of the minute by now.
  table[1] = { ...noAmounts, requests: 24 }
  isHolding = true
  const asked = [gateway.admit('large', 300, 0)]
  await turns()
  for (const name of ['second', 'third', 'fourth']) asked.push(gateway.admit(name, 1, 0))
  await turns()
  held.shift()?.()
  await turns()
  expect(gateway.out().requests).toBeLessThanOrEqual(table[0]?.requests ?? 0)
  isHolding = false
  for (const go of held.splice(0)) go()
  await Promise.all(asked)
  expect(gateway.out().requests).toBe(5)
  expect(table[0]?.requests).toBeGreaterThanOrEqual(5)
  gateway.close()
})

test('where Postgres is there and gives no claim in time, nothing is handed out beside what others may have', async () => {
  const table = [noAmounts, noAmounts, noAmounts]
  const late = () => Promise.reject(new GatewayError('service_unavailable', 'Postgres is late.'))
  const gateway = rig(0, table, late, 200)
  await gateway.open()
  await expect(gateway.admit('one', 1, 0)).rejects.toMatchObject({ code: 'service_unavailable', retryAfterMs: 1000 })
  expect(gateway.out()).toEqual(noAmounts)
  gateway.close()
})
