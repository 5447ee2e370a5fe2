/** Guarantees of every meter, whichever store it uses. */
import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { type Limits, plans } from '../../src/core/limits/plans.ts'
import { type ScopeLimits, tagScopeName, unlimitedScope } from '../../src/core/limits/scopes.ts'
import { projectTagName } from '../../src/core/request/tags.ts'
import type { UsageRecord } from '../../src/core/usage/usage-record.ts'
import type { Admission, AdmissionRequest, Meter, Reservation } from '../../src/limits/meter.ts'
import { usageRecord } from '../database/support.ts'

export type MeterRig = {
  readonly meter: Meter
  readonly clock: { now(): number; move(milliseconds: number): void }
  /** Durable records so far, in order. */
  records(): Promise<readonly UsageRecord[]>
  close(): Promise<void>
}

export const wide: Limits = {
  requestsPerMinute: 1000,
  concurrentRequests: 10,
  dailyTokens: 1_000_000,
  dailyCostMicrocents: 1_000_000_000,
}

export function send(requestId: string, changes: Partial<AdmissionRequest> = {}): AdmissionRequest {
  return {
    requestId,
    accountId: 'acc_1',
    limits: wide,
    scopes: [],
    inputTokens: 100,
    outputTokens: 200,
    choices: 1,
    fairShare: false,
    inputPrice: 100_000_000,
    outputPrice: 500_000_000,
    extraMicrocents: 0,
    conversation: null,
    ...changes,
  }
}

/** A scope of the key `key_1`, or of another name, with these limits. */
export function scope(limits: Partial<ScopeLimits>, name = 'key:key_1') {
  return { name, limits: { ...unlimitedScope, ...limits } }
}

export function settlement(reservation: Reservation, tokens: number, microcents: number, now: number) {
  return {
    reservation,
    record: usageRecord({
      request_id: reservation.requestId,
      account_id: reservation.accountId,
      at_ms: now,
      input_tokens: tokens,
      output_tokens: 0,
      billed_microcents: microcents,
      reserved_microcents: reservation.reservedMicrocents,
    }),
  }
}

export function admitted(admission: Admission): Reservation {
  if (!admission.admitted) throw new Error(`refused: ${admission.code}`)
  return admission.reservation
}

export function meterContract(name: string, open: () => Promise<MeterRig>): void {
  const rigged = (title: string, body: (rig: MeterRig) => Promise<void>) =>
    test(title, async () => {
      const rig = await open()
      try {
        await body(rig)
      } finally {
        await rig.close()
      }
    })

  describe(name, () => {
    rigged('a seat reserves input plus cap, at a price rounded up once', async ({ meter }) => {
      const reservation = admitted(
        await meter.admit(
          send('a', { inputTokens: 1, outputTokens: 3, inputPrice: 1, outputPrice: 1, extraMicrocents: 7 }),
        ),
      )
      expect(reservation).toMatchObject({ outputCap: 3, reservedTokens: 4, reservedMicrocents: 8 })
    })

    rigged('loadStatus: reads the counters of an unknown account and reserves nothing', async ({ meter }) => {
      expect(meter.quotaStatus('acc_1', wide)).toBeNull()
      const untouched = {
        requests: { limit: 1000, remaining: 1000 },
        tokens: { remaining: 1_000_000 },
        costMicrocents: { remaining: 1_000_000_000 },
        reservations: { limit: 10, remaining: 10 },
      }
      for (let times = 0; times < 3; times++) expect(await meter.loadStatus('acc_1', wide)).toMatchObject(untouched)
      expect(meter.quotaStatus('acc_1', wide)).toMatchObject(untouched)
      admitted(await meter.admit(send('a')))
      const used = { requests: { remaining: 999 }, reservations: { remaining: 9 } }
      expect(await meter.loadStatus('acc_1', wide)).toMatchObject(used)
      expect(meter.quotaStatus('acc_1', wide)).toMatchObject(used)
    })

    rigged('charge: counts tokens and cost of the day, but no request and no seat', async rig => {
      const { meter, clock } = rig
      admitted(await meter.admit(send('a')))
      const before = await meter.loadStatus('acc_1', wide)
      const usage = { input_tokens: 30, output_tokens: 4, billed_microcents: 700 }
      await meter.charge(usageRecord({ request_id: 'b', account_id: 'acc_1', at_ms: clock.now(), ...usage }))
      const { requests, reservations, tokens, costMicrocents } = await meter.loadStatus('acc_1', wide)
      expect([requests.remaining, reservations.remaining]).toEqual([
        before.requests.remaining,
        before.reservations.remaining,
      ])
      expect(before.tokens.remaining - tokens.remaining).toBe(34)
      expect(before.costMicrocents.remaining - costMicrocents.remaining).toBe(700)
      expect((await rig.records()).map(({ request_id }) => request_id)).toEqual(['b'])
    })

    rigged('loadStatus: counts what an admission counts, in both forms of the minute', async ({ meter, clock }) => {
      for (const requestsPerMinute of [900, 2000]) {
        const limits = { ...wide, requestsPerMinute }
        const accountId = `acc_of_${requestsPerMinute}`
        const probe = () =>
          meter.admit(send(crypto.randomUUID(), { accountId, limits: { ...limits, concurrentRequests: 0 } }))
        const open: Reservation[] = []
        for (const [index, movedMs] of [0, 10, 999, 30_000, 29_000, 500, 61_000, 86_400_000, 20].entries()) {
          clock.move(movedMs)
          const before = await meter.loadStatus(accountId, limits)
          await probe()
          expect([index, before]).toEqual([index, meter.quotaStatus(accountId, limits) ?? before])
          open.push(admitted(await meter.admit(send(`${accountId}_${index}`, { accountId, limits }))))
          const during = await meter.loadStatus(accountId, limits)
          expect(during.reservations.remaining).toBe(9)
          await probe()
          expect([index, during]).toEqual([index, meter.quotaStatus(accountId, limits) ?? during])
          for (const reservation of open.splice(0))
            await meter.settle(settlement(reservation, 120, 30_000, clock.now()))
        }
      }
    })

    rigged(
      'check: decides what admit then decides, and takes nothing, whatever the account has left',
      async ({ meter }) => {
        const codes = new Set<string>()
        const counts = fc.record({
          requestsPerMinute: fc.integer({ min: 0, max: 12 }),
          concurrentRequests: fc.integer({ min: 0, max: 6 }),
          dailyTokens: fc.integer({ min: 0, max: 4_000 }),
          dailyCostMicrocents: fc.integer({ min: 0, max: 1_500_000 }),
        })
        const requests = fc.record({
          inputTokens: fc.nat({ max: 1_500 }),
          outputTokens: fc.integer({ min: 1, max: 1_500 }),
          choices: fc.integer({ min: 1, max: 3 }),
          fairShare: fc.boolean(),
          extraMicrocents: fc.nat({ max: 400_000 }),
        })
        let accounts = 0
        await fc.assert(
          fc.asyncProperty(counts, fc.array(requests, { minLength: 1, maxLength: 6 }), async (limits, asked) => {
            const accountId = `acc_check_${accounts++}`
            for (const [at, fields] of asked.entries()) {
              const request = send(`${accountId}_${at}`, { ...fields, accountId, limits })
              const before = await meter.check(request)
              expect(await meter.check(request)).toEqual(before)
              const admission = await meter.admit(request)
              codes.add(admission.admitted ? 'admitted' : admission.code)
              expect(before?.code ?? null).toBe(admission.admitted ? null : admission.code)
              if (!admission.admitted) expect(before?.retryAfterMs).toBeGreaterThanOrEqual(admission.retryAfterMs - 1)
            }
          }),
          { numRuns: 60 },
        )
        expect([...codes].toSorted()).toEqual([
          'admitted',
          'concurrent_requests_exceeded',
          'daily_cost_exceeded',
          'daily_tokens_exceeded',
          'requests_per_minute_exceeded',
        ])
      },
    )

    rigged('output is reserved for every answer asked for', async ({ meter }) => {
      const reservation = admitted(await meter.admit(send('a', { choices: 4 })))
      expect(reservation).toMatchObject({ outputCap: 200, reservedTokens: 900, reservedMicrocents: 410_000 })
    })

    rigged('the minute slides: a place opens exactly when the oldest request leaves it', async ({ meter, clock }) => {
      const limits = { ...wide, requestsPerMinute: 2 }
      await meter.admit(send('a', { limits }))
      clock.move(10_000)
      await meter.admit(send('b', { limits }))
      clock.move(5_000)
      expect(await meter.admit(send('c', { limits }))).toMatchObject({
        admitted: false,
        code: 'requests_per_minute_exceeded',
        retryAfterMs: 45_000,
      })
      expect(meter.quotaStatus('acc_1', limits)?.requests).toEqual({ limit: 2, remaining: 0, resetMs: 55_000 })
      clock.move(44_999)
      expect((await meter.admit(send('c', { limits }))).admitted).toBe(false)
      clock.move(1)
      expect((await meter.admit(send('c', { limits }))).admitted).toBe(true)
    })

    rigged('a seat is free again once its request is settled', async ({ meter, clock }) => {
      const limits = { ...wide, concurrentRequests: 1 }
      const reservation = admitted(await meter.admit(send('a', { limits })))
      expect(await meter.admit(send('b', { limits }))).toMatchObject({
        admitted: false,
        code: 'concurrent_requests_exceeded',
        retryAfterMs: 1000,
      })
      await meter.settle(settlement(reservation, 10, 10, clock.now()))
      expect((await meter.admit(send('b', { limits }))).admitted).toBe(true)
    })

    rigged(
      'the day runs out by tokens, with the time until midnight UTC, and comes back then',
      async ({ meter, clock }) => {
        const limits = { ...wide, dailyTokens: 300 }
        const reservation = admitted(await meter.admit(send('a', { limits })))
        await meter.settle(settlement(reservation, 300, 10, clock.now()))
        const untilMidnight = 86_400_000 - (clock.now() % 86_400_000)
        expect(await meter.admit(send('b', { limits }))).toMatchObject({
          admitted: false,
          code: 'daily_tokens_exceeded',
          retryAfterMs: untilMidnight,
        })
        clock.move(untilMidnight)
        expect((await meter.admit(send('b', { limits }))).admitted).toBe(true)
      },
    )

    rigged('the day runs out by cost', async ({ meter, clock }) => {
      const limits = { ...wide, dailyCostMicrocents: 110_000 }
      const reservation = admitted(await meter.admit(send('a', { limits })))
      await meter.settle(settlement(reservation, 300, 110_000, clock.now()))
      expect(await meter.admit(send('b', { limits }))).toMatchObject({ admitted: false, code: 'daily_cost_exceeded' })
    })

    rigged('refusals are told in the order requests, seats, tokens, cost', async ({ meter }) => {
      const none = { requestsPerMinute: 1, concurrentRequests: 1, dailyTokens: 300, dailyCostMicrocents: 110_000 }
      await meter.admit(send('a', { limits: none }))
      const code = async (limits: Limits) => {
        const admission = await meter.admit(send('b', { limits }))
        return admission.admitted ? null : admission.code
      }
      expect(await code(none)).toBe('requests_per_minute_exceeded')
      expect(await code({ ...none, requestsPerMinute: 9 })).toBe('concurrent_requests_exceeded')
      expect(await code({ ...none, requestsPerMinute: 9, concurrentRequests: 9 })).toBe('daily_tokens_exceeded')
      expect(await code({ ...wide, dailyCostMicrocents: 110_000 })).toBe('daily_cost_exceeded')
    })

    rigged('a refusal costs nothing', async ({ meter }) => {
      const limits = { ...wide, requestsPerMinute: 3 }
      await meter.admit(send('a', { limits }))
      const before = meter.quotaStatus('acc_1', limits)
      for (let round = 0; round < 10; round++) {
        expect((await meter.admit(send(`r${round}`, { limits, inputTokens: 2_000_000 }))).admitted).toBe(false)
      }
      expect(meter.quotaStatus('acc_1', limits)).toEqual(before)
    })

    rigged('a given cap is clamped to what remains, by tokens and by cost', async ({ meter }) => {
      const byTokens = admitted(await meter.admit(send('a', { limits: { ...wide, dailyTokens: 150 } })))
      expect(byTokens).toMatchObject({ outputCap: 50, reservedTokens: 150 })
      const byCost = admitted(
        await meter.admit(
          send('b', { accountId: 'acc_2', limits: { ...wide, dailyCostMicrocents: 10_000 + 3 * 500 + 499 } }),
        ),
      )
      expect(byCost).toMatchObject({ outputCap: 3, reservedMicrocents: 11_500 })
    })

    rigged('without a cap of its own a request gets a fair share of what its account has left', async ({ meter }) => {
      const limits = { ...plans.usage, dailyCostMicrocents: 1_000_000_000 }
      const first = admitted(
        await meter.admit(send('a', { limits, fairShare: true, outputTokens: 1_000_000, outputPrice: 0 })),
      )
      expect(first.outputCap).toBe((500_000 - 100) / 5)
      const second = admitted(
        await meter.admit(send('b', { limits, fairShare: true, outputTokens: 1_000_000, outputPrice: 0 })),
      )
      expect(second.outputCap).toBe((500_000 - first.reservedTokens - 100) / 4)
      const limited = { ...wide, dailyCostMicrocents: 10_000 + 10 * 500 * 7 }
      const byCost = admitted(await meter.admit(send('c', { accountId: 'acc_2', limits: limited, fairShare: true })))
      expect(byCost.outputCap).toBe(7)
    })

    rigged('a share smaller than one token is still one where that much is left', async ({ meter }) => {
      const limits = { ...wide, dailyTokens: 103 }
      expect(admitted(await meter.admit(send('a', { limits, fairShare: true }))).outputCap).toBe(1)
    })

    rigged(
      'a repeated id gets the seat it has and takes nothing again, before and after settling',
      async ({ meter, clock }) => {
        const first = admitted(await meter.admit(send('a')))
        const quotaStatus = meter.quotaStatus('acc_1', wide)
        expect(admitted(await meter.admit(send('a')))).toEqual(first)
        expect(meter.quotaStatus('acc_1', wide)).toEqual(quotaStatus)
        await meter.settle(settlement(first, 10, 10, clock.now()))
        expect(admitted(await meter.admit(send('a')))).toEqual(first)
        expect(meter.quotaStatus('acc_1', wide)?.tokens.remaining).toBe(wide.dailyTokens - 10)
      },
    )

    rigged('a request is settled once, to what it really used', async ({ meter, clock, records }) => {
      const reservation = admitted(await meter.admit(send('a')))
      await meter.settle(settlement(reservation, 120, 20_000, clock.now()))
      const once = meter.quotaStatus('acc_1', wide)
      expect(once).toMatchObject({
        tokens: { remaining: 999_880 },
        costMicrocents: { remaining: 999_980_000 },
        reservations: { remaining: 10 },
      })
      await meter.settle(settlement(reservation, 300, 110_000, clock.now()))
      expect(meter.quotaStatus('acc_1', wide)).toEqual(once)
      expect((await records()).map(record => [record.request_id, record.billed_microcents])).toEqual([['a', 20_000]])
    })

    rigged(
      'what is billed is never more than was reserved, in the counters and in the record',
      async ({ meter, clock, records }) => {
        const reservation = admitted(await meter.admit(send('a')))
        await meter.settle(settlement(reservation, 5_000_000, 9_000_000, clock.now()))
        expect(meter.quotaStatus('acc_1', wide)?.costMicrocents.remaining).toBe(
          wide.dailyCostMicrocents - reservation.reservedMicrocents,
        )
        expect((await records())[0]).toMatchObject({
          billed_microcents: reservation.reservedMicrocents,
          reserved_microcents: reservation.reservedMicrocents,
        })
      },
    )

    rigged(
      'settle: counts all tokens against the day when more were used than reserved',
      async ({ meter, clock, records }) => {
        const limits = { ...wide, dailyTokens: 5_000 }
        const reservation = admitted(await meter.admit(send('a', { limits })))
        await meter.settle(settlement(reservation, 4_000, 20_000, clock.now()))
        expect(meter.quotaStatus('acc_1', limits)?.tokens.remaining).toBe(1_000)
        const last = admitted(await meter.admit(send('b', { limits, inputTokens: 900 })))
        expect(last.outputCap).toBe(100)
        await meter.settle(settlement(last, 6_000, 20_000, clock.now()))
        expect(meter.quotaStatus('acc_1', limits)?.tokens.remaining).toBe(0)
        expect(await meter.admit(send('c', { limits, inputTokens: 0, outputTokens: 1 }))).toMatchObject({
          admitted: false,
          code: 'daily_tokens_exceeded',
        })
        expect((await records()).map(record => record.input_tokens)).toEqual([4_000, 6_000])
      },
    )

    rigged('a reservation is raised whole or not at all', async ({ meter, clock, records }) => {
      const limits = { ...wide, dailyTokens: 1000, dailyCostMicrocents: 200_000 }
      const reservation = admitted(await meter.admit(send('a', { limits })))
      expect(await meter.raise(reservation, 300, 200_001)).toBeNull()
      expect(await meter.raise(reservation, 1001, 110_000)).toBeNull()
      expect(meter.quotaStatus('acc_1', limits)).toMatchObject({
        tokens: { remaining: 700 },
        costMicrocents: { remaining: 90_000 },
      })
      const raised = await meter.raise(reservation, 300, 200_000)
      expect(raised).toEqual({ ...reservation, reservedMicrocents: 200_000 })
      expect(meter.quotaStatus('acc_1', limits)).toMatchObject({ costMicrocents: { remaining: 0 } })
      await meter.settle(settlement(raised ?? reservation, 300, 150_000, clock.now()))
      expect((await records())[0]).toMatchObject({ billed_microcents: 150_000, reserved_microcents: 200_000 })
      expect(await meter.raise(reservation, 900, 200_000)).toBeNull()
    })

    rigged('raise: counts the largest of two amounts when both are asked for at once', async ({ meter, clock }) => {
      const reservation = admitted(await meter.admit(send('a')))
      await Promise.all([meter.raise(reservation, 400, 150_000), meter.raise(reservation, 500, 160_000)])
      const left = () => meter.quotaStatus('acc_1', wide)?.tokens.remaining
      expect(left()).toBe(wide.dailyTokens - 500)
      await meter.settle(settlement(reservation, 100, 1_000, clock.now()))
      expect(left()).toBe(wide.dailyTokens - 100)
    })

    rigged('a request belongs to the day of its reservation and settles there', async ({ meter, clock, records }) => {
      clock.move(86_400_000 - (clock.now() % 86_400_000) - 1)
      const reservation = admitted(await meter.admit(send('a')))
      clock.move(5_000)
      await meter.settle(settlement(reservation, 300, 100_000, clock.now()))
      expect(meter.quotaStatus('acc_1', wide)?.tokens.remaining).toBe(wide.dailyTokens)
      const record = (await records())[0]
      expect(Math.floor((record?.at_ms ?? 0) / 86_400_000)).toBe(reservation.day)
    })

    rigged('a clock that is set back over midnight keeps the counters of the newest day', async ({ meter, clock }) => {
      const limits = { ...wide, dailyTokens: 300 }
      clock.move(86_400_000 - (clock.now() % 86_400_000) + 5_000)
      const reservation = admitted(await meter.admit(send('a', { limits })))
      clock.move(-10_000)
      const late = send('b', { limits })
      expect(await meter.admit(late)).toMatchObject({ admitted: false, code: 'daily_tokens_exceeded' })
      await meter.settle(settlement(reservation, 300, 10, clock.now()))
      expect(await meter.admit(late)).toMatchObject({ admitted: false, code: 'daily_tokens_exceeded' })
      clock.move(86_400_000)
      expect((await meter.admit(late)).admitted).toBe(false)
      clock.move(10_000)
      expect((await meter.admit(late)).admitted).toBe(true)
    })

    rigged('a reservation of an earlier day is not raised', async ({ meter, clock }) => {
      const reservation = admitted(await meter.admit(send('a')))
      clock.move(86_400_000)
      expect(await meter.raise(reservation, 400, 120_000)).toBeNull()
    })

    rigged('accounts do not touch each other', async ({ meter }) => {
      const limits = { ...wide, concurrentRequests: 1 }
      admitted(await meter.admit(send('a', { limits })))
      expect((await meter.admit(send('b', { limits, accountId: 'acc_2' }))).admitted).toBe(true)
      expect(meter.quotaStatus('acc_3', limits)).toBeNull()
    })

    rigged('of many at once exactly as many are let in as there are seats', async ({ meter }) => {
      const many = await Promise.all(Array.from({ length: 100 }, (_, index) => meter.admit(send(`r${index}`))))
      expect(many.filter(admission => admission.admitted)).toHaveLength(wide.concurrentRequests)
    })

    rigged('lowered limits act on the next request', async ({ meter }) => {
      admitted(await meter.admit(send('a')))
      admitted(await meter.admit(send('b')))
      const limits = { ...wide, concurrentRequests: 1 }
      expect(await meter.admit(send('c', { limits }))).toMatchObject({ code: 'concurrent_requests_exceeded' })
      expect(meter.quotaStatus('acc_1', limits)?.reservations).toEqual({ limit: 1, remaining: 0 })
    })

    rigged('scopes: each limit of a key is exact, and the rejection names its scope', async ({ meter, clock }) => {
      const cases: readonly (readonly [Partial<ScopeLimits>, string])[] = [
        [{ requestsPerMinute: 1 }, 'requests_per_minute_exceeded'],
        [{ concurrentRequests: 1 }, 'concurrent_requests_exceeded'],
        [{ dailyTokens: 399 }, 'daily_tokens_exceeded'],
        [{ dailyCostMicrocents: 120_000 }, 'daily_cost_exceeded'],
        [{ monthlyCostMicrocents: 120_000 }, 'monthly_cost_exceeded'],
      ]
      for (const [limits, code] of cases) {
        const name = `key:${code}`
        const scopes = [scope(limits, name)]
        const request = (id: string, of = scopes) => send(`${code} ${id}`, { scopes: of })
        expect(await meter.check(request('b'))).toBeNull()
        const first = admitted(await meter.admit(request('a')))
        const second = request('b')
        const reached = await meter.check(second)
        expect(reached).toMatchObject({ code, scope: name })
        expect(await meter.admit(request('b'))).toMatchObject({ admitted: false, ...reached })
        // Another key, and a request without one, are not affected.
        const others = [scope(limits, `${name} of another key`)]
        const beside = admitted(await meter.admit(request('other', others)))
        const without = admitted(await meter.admit(send(`${code} without`)))
        for (const reservation of [first, beside, without])
          await meter.settle(settlement(reservation, 300, 110_000, clock.now()))
      }
    })

    rigged('scopes: a request fits into what its tightest scope has left', async ({ meter }) => {
      const byTokens = admitted(
        await meter.admit(
          send('a', { scopes: [scope({ dailyTokens: 500 }), scope({ dailyTokens: 150 }, 'tag:team=search')] }),
        ),
      )
      expect(byTokens).toMatchObject({ outputCap: 50, reservedTokens: 150 })
      const byCost = admitted(
        await meter.admit(
          send('b', { scopes: [scope({ monthlyCostMicrocents: 10_000 + 3 * 500 + 499 }, 'tag:env=dev')] }),
        ),
      )
      expect(byCost).toMatchObject({ outputCap: 3, reservedMicrocents: 11_500 })
    })

    rigged('scopes: a settlement frees what was not used, in each of them', async ({ meter, clock }) => {
      const scopes = [
        scope({ dailyTokens: 600, dailyCostMicrocents: 300_000, concurrentRequests: 1 }),
        scope({ monthlyCostMicrocents: 230_000 }, 'tag:team=search'),
      ]
      for (const id of ['a', 'b']) {
        const reservation = admitted(await meter.admit(send(id, { scopes })))
        expect(reservation.outputCap).toBe(200)
        await meter.settle(settlement(reservation, 110, 20_000, clock.now()))
      }
      // 220 tokens and 40,000 are used: 80 tokens of output remain after 300 of input.
      expect(admitted(await meter.admit(send('c', { scopes, inputTokens: 300 }))).outputCap).toBe(80)
    })

    rigged('scopes: tokens above the reservation count, cost above it does not', async ({ meter, clock }) => {
      const scopes = [scope({ dailyTokens: 5_000, dailyCostMicrocents: 220_000 })]
      const reservation = admitted(await meter.admit(send('a', { scopes })))
      await meter.settle(settlement(reservation, 4_950, 9_000_000, clock.now()))
      expect(await meter.check(send('b', { scopes }))).toMatchObject({ code: 'daily_tokens_exceeded' })
      expect(admitted(await meter.admit(send('c', { scopes, inputTokens: 1, outputTokens: 10 }))).outputCap).toBe(10)
    })

    rigged('scopes: the day starts again at midnight UTC, the month with its first day', async ({ meter, clock }) => {
      const scopes = [scope({ dailyCostMicrocents: 110_000, monthlyCostMicrocents: 220_000 })]
      const untilMidnight = () => 86_400_000 - (clock.now() % 86_400_000)
      const spend = async (id: string) =>
        meter.settle(settlement(admitted(await meter.admit(send(id, { scopes }))), 300, 110_000, clock.now()))
      const untilMonth = () => {
        const date = new Date(clock.now())
        return Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + 1, 1) - clock.now()
      }
      // From the first of a month on, so that two days of one month follow.
      clock.move(untilMonth())
      await spend('a')
      expect(await meter.check(send('b', { scopes }))).toMatchObject({
        code: 'daily_cost_exceeded',
        retryAfterMs: untilMidnight(),
      })
      clock.move(untilMidnight())
      await spend('b')
      clock.move(untilMidnight())
      expect(await meter.check(send('c', { scopes }))).toEqual({
        code: 'monthly_cost_exceeded',
        scope: 'key:key_1',
        retryAfterMs: untilMonth(),
      })
      clock.move(untilMonth())
      await spend('c')
    })

    rigged('scopes: the minute of a key slides', async ({ meter, clock }) => {
      const scopes = [scope({ requestsPerMinute: 2 })]
      await meter.admit(send('a', { scopes }))
      clock.move(10_000)
      await meter.admit(send('b', { scopes }))
      clock.move(5_000)
      expect(await meter.admit(send('c', { scopes }))).toMatchObject({ scope: 'key:key_1', retryAfterMs: 45_000 })
      clock.move(45_000)
      expect((await meter.admit(send('c', { scopes }))).admitted).toBe(true)
    })

    rigged('scopes: more than 100 per minute are never over, and at most 1 s late', async ({ meter, clock }) => {
      const limits = { ...wide, requestsPerMinute: 10_000, concurrentRequests: 1_000 }
      const scopes = [scope({ requestsPerMinute: 150 })]
      for (let index = 0; index < 150; index++) {
        clock.move(20)
        admitted(await meter.admit(send(`r${index}`, { limits, scopes, outputTokens: 1 })))
      }
      expect((await meter.admit(send('over', { limits, scopes }))).admitted).toBe(false)
      clock.move(57_000 + 1_000 + 20)
      expect((await meter.admit(send('again', { limits, scopes, outputTokens: 1 }))).admitted).toBe(true)
    })

    rigged(
      'scopes: a changed limit counts what is open and used since the scope has limits',
      async ({ meter, clock }) => {
        const decide = (id: string, limits: Partial<ScopeLimits>) => meter.admit(send(id, { scopes: [scope(limits)] }))
        const end = (reservation: Reservation) => meter.settle(settlement(reservation, 300, 110_000, clock.now()))
        const [a, b] = [
          admitted(await decide('a', { concurrentRequests: 2 })),
          admitted(await decide('b', { concurrentRequests: 2 })),
        ]
        expect(await decide('c', { concurrentRequests: 1 })).toMatchObject({ code: 'concurrent_requests_exceeded' })
        await end(a)
        expect(await decide('d', { concurrentRequests: 1 })).toMatchObject({ code: 'concurrent_requests_exceeded' })
        await end(b)
        const c = admitted(await decide('e', { concurrentRequests: 1 }))
        expect(await decide('f', { dailyTokens: 900 })).toMatchObject({ code: 'daily_tokens_exceeded' })
        expect(await decide('g', { dailyCostMicrocents: 330_000 })).toMatchObject({ code: 'daily_cost_exceeded' })
        expect(await decide('h', { monthlyCostMicrocents: 330_000 })).toMatchObject({ code: 'monthly_cost_exceeded' })
        await end(c)
        expect(admitted(await decide('i', { dailyTokens: 1_050 })).outputCap).toBe(50)
      },
    )

    rigged('scopes: a reservation is raised within their limits or not at all', async ({ meter }) => {
      const scopes = [scope({ dailyTokens: 1000 }), scope({ monthlyCostMicrocents: 200_000 }, 'tag:team=search')]
      const reservation = admitted(await meter.admit(send('a', { scopes })))
      expect(await meter.raise(reservation, 300, 200_001)).toBeNull()
      expect(await meter.raise(reservation, 1001, 110_000)).toBeNull()
      expect(await meter.raise(reservation, 900, 200_000)).toMatchObject({
        reservedTokens: 900,
        reservedMicrocents: 200_000,
      })
      expect(await meter.check(send('b', { scopes, inputTokens: 9 }))).toMatchObject({ scope: 'tag:team=search' })
    })

    rigged('scopes: of many at once exactly as many are let in as a scope allows', async ({ meter }) => {
      const cases: readonly (readonly [string, Partial<ScopeLimits>])[] = [
        ['requests', { requestsPerMinute: 7 }],
        ['slots', { concurrentRequests: 7 }],
        ['tokens', { dailyTokens: 7 * 11 }],
        ['cents', { dailyCostMicrocents: 7_000 }],
        ['month', { monthlyCostMicrocents: 7_000 }],
      ]
      const limits = { ...wide, concurrentRequests: 1_000 }
      for (const [name, limit] of cases)
        for (const kind of [`key:${name}`, `tag:case=${name}`, tagScopeName(projectTagName, `prj_${name}`)]) {
          const request = {
            limits,
            scopes: [scope({}, 'key:beside'), scope(limit, kind)],
            inputTokens: 10,
            outputTokens: 1,
            inputPrice: 0,
            outputPrice: 1_000_000_000,
          }
          const many = await Promise.all(
            Array.from({ length: 60 }, (_, index) => meter.admit(send(`${kind} ${index}`, request))),
          )
          expect([kind, many.filter(admission => admission.admitted).length]).toEqual([kind, 7])
        }
    })
  })
}
