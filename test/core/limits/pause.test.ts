/** A pause holds one key of an evaluation account, and ends with the UTC day. */
import { expect, test } from 'bun:test'
import { type Caller, findPause, plans } from '../../../src/core/limits/plans.ts'
import { checkPaid } from '../../../src/request/admit.ts'

const short = { shortfallDay: '2026-05-05', shortfallMicrocents: 101, shortfallRequestId: 'req_most' }
const until = Date.UTC(2026, 4, 6)

test.each([
  ['pauses a key of an evaluation account', 'evaluation', short, { until, requestId: 'req_most' }],
  ['pauses no key with the largest allowed shortfall', 'evaluation', { ...short, shortfallMicrocents: 100 }, null],
  ['pauses no key of an account that pays for all usage', 'usage', short, null],
] as const)('pauseOf: %s', (_, plan, shortfall, expected) => {
  expect(findPause(plan, shortfall, 100)).toEqual(expected)
})

test('checkPaid: names the member, the request and the end of a pause, and lets the key chat after it', () => {
  const pause = { until, requestId: 'req_most', userId: 'usr_1' }
  const caller: Caller = { accountId: 'acc_1', keyId: 'key_1', plan: 'evaluation', limits: plans.evaluation, pause }
  const at = (now: number) => () => checkPaid({ clock: { now: () => now } }, caller)
  expect(at(until - 1_000)).toThrow(
    expect.objectContaining({
      code: 'account_paused',
      retryAfterMs: 1_000,
      message: expect.stringMatching(/usr_1.*2026-05-06T00:00:00\.000Z.*req_most/),
    }),
  )
  expect(at(until)).not.toThrow()
})
