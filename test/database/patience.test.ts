import { describe, expect, test } from 'bun:test'
import { RedisUnavailableError } from '../../src/core/limits/redis.ts'
import { createPatience } from '../../src/database/patience.ts'

/** Resolves after a number of event loop turns that are each busy for `busyMs`. */
function afterTurns(turns: number, busyMs: number): Promise<string> {
  return new Promise(done => {
    const turn = (left: number) => {
      const until = performance.now() + busyMs
      while (performance.now() < until);
      if (left === 0) done('reply')
      else setImmediate(turn, left - 1)
    }
    setImmediate(turn, turns)
  })
}

describe('patience', () => {
  test('waits longer than the deadline while the process is busy', async () => {
    const { within } = createPatience()
    expect(await within(afterTurns(10, 60), 250)).toBe('reply')
  })

  test('counts a blocked event loop as one tick', async () => {
    const { within } = createPatience()
    expect(await within(afterTurns(1, 600), 100)).toBe('reply')
  })

  test('rejects when an idle process has waited for the deadline, each wait after its own', async () => {
    const { within } = createPatience()
    const outcome = (deadlineMs: number) =>
      within(new Promise<never>(() => {}), deadlineMs).catch((cause: unknown) => cause)
    const order: number[] = []
    const waits = [60, 20].map(async deadlineMs => {
      expect(await outcome(deadlineMs)).toBeInstanceOf(RedisUnavailableError)
      order.push(deadlineMs)
    })
    await Promise.all(waits)
    expect(order).toEqual([20, 60])
  })

  test('rejects as the promise does', async () => {
    const { within } = createPatience()
    await expect(within(Promise.reject(new Error('refused')), 100)).rejects.toThrow('refused')
  })
})
