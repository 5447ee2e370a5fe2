import { expect, test } from 'bun:test'
import { createRequestAbort } from '../../src/core/chat/request-abort.ts'
import { catalog } from '../../src/models/catalog.ts'
import { createKeySearch, waitForCapacity } from '../../src/request/claim-key.ts'
import { candidateOf } from './support.ts'

test('key search: tries every limited candidate again after one wait, the soonest first', async () => {
  const [one, two, three] = catalog.map(candidateOf)
  if (one === undefined || two === undefined || three === undefined) throw new Error('the catalog has three models')
  const waits: number[] = []
  const clock = {
    monotonic: () => 0,
    after(milliseconds: number, action: () => void) {
      waits.push(milliseconds)
      queueMicrotask(action)
      return () => {}
    },
  }
  const keys = createKeySearch()
  keys.limited = [
    { candidate: one, waitMs: 900 },
    { candidate: two, waitMs: 300 },
    { candidate: three, waitMs: 600 },
  ]
  expect(await wait()).toBe(two)
  expect([keys.waited, keys.limited, waits]).toEqual([[three, one], [], [300]])

  function wait() {
    const { signal } = createRequestAbort()
    const progress = { upstreamMs: 0 }
    return waitForCapacity({
      deps: { clock, health: { report() {} } },
      request: { signal },
      progress,
      keys,
      deadlineAt: 10_000,
    })
  }
})
