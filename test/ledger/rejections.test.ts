import { afterEach, expect, jest, test } from 'bun:test'
import { RejectionLog } from '../../src/ledger/find-request.ts'

afterEach(() => void jest.useRealTimers())

const rejection = (id: number) => ({
  request_id: `req_${id}`,
  at_ms: 0,
  account_id: 'acc_1',
  key_id: 'key_1',
  requested_model: null,
  dialect: null,
  strategy: null,
  streamed: false,
  error_code: 'invalid_request',
  param: null,
  layer: null,
  category: null,
  latency_ms: 1,
})

test('rejection log: keeps at most one batch behind a database that does not answer', async () => {
  jest.useFakeTimers()
  const { promise, reject } = Promise.withResolvers<never>()
  const warnings: unknown[] = []
  const rejections = new RejectionLog({
    database: { address: 'postgres://away', run: () => promise, transact: () => promise, close: async () => {} },
    log: { warn: (_, fields) => void warnings.push(fields?.records) },
  })
  for (let second = 0; second < 30; second++) {
    for (let count = 0; count < 20; count++) rejections.add(rejection(second * 20 + count))
    jest.advanceTimersByTime(1_000)
    await Promise.resolve()
  }
  reject(new Error('away'))
  await rejections.close()
  // The first batch is being written and the second one waits; the other 28 are dropped, and then the first.
  expect(warnings[0]).toBe(29 * 20)
})
