import { afterEach, expect, jest, test } from 'bun:test'
import { startFollowing, startRepeating, whenNeeded } from '../../../src/core/jobs/repeating.ts'

afterEach(() => void jest.useRealTimers())

/** A job whose runs the test ends. */
function heldJob() {
  const runs: PromiseWithResolvers<void>[] = []
  const job = startRepeating(
    3_600_000,
    () => {
      const held = Promise.withResolvers<void>()
      runs.push(held)
      return held.promise
    },
    () => {},
    () => () => {},
  )
  return { job, runs }
}

test('repeating job: starts one more run for all calls during a run', async () => {
  const { job, runs } = heldJob()
  const first = job.run()
  const later = [job.run(), job.run()]
  expect(runs).toHaveLength(1)
  runs[0]?.resolve()
  await first
  await Promise.resolve()
  expect(runs).toHaveLength(2)
  runs[1]?.resolve()
  await Promise.all(later)
  expect(runs).toHaveLength(2)
  await job.close()
})

test('repeating job: starts the next run after a failed one, and reports each to its own callers', async () => {
  const { job, runs } = heldJob()
  const [first, second] = [job.run(), job.run()]
  runs[0]?.reject(new Error('lost'))
  expect(await first.catch(String)).toContain('lost')
  await Promise.resolve()
  runs[1]?.resolve()
  expect(await second).toBeUndefined()
  await job.close()
})

test('repeating job: starts no run after its end', async () => {
  const { job, runs } = heldJob()
  const [first, second] = [job.run(), job.run()]
  const closed = job.close()
  runs[0]?.resolve()
  await Promise.all([first, second, closed])
  expect(runs).toHaveLength(1)
})

test('repeating job: starts no concurrent run when a caller of the first run starts another before the second', async () => {
  const { job, runs } = heldJob()
  const again = job.run().then(() => job.run())
  const later = job.run()
  runs[0]?.resolve()
  await Bun.sleep(0)
  expect(runs).toHaveLength(2)
  runs[1]?.resolve()
  await Promise.all([again, later])
  await job.close()
})

test('repeating job: runs when its timer fires, but not during another run', async () => {
  let tick = () => {}
  let runs = 0
  const held = Promise.withResolvers<void>()
  const job = startRepeating(
    2_000,
    () => {
      runs++
      return held.promise
    },
    () => {},
    (everyMs, action) => {
      expect(everyMs).toBe(2_000)
      tick = action
      return () => {
        tick = () => {}
      }
    },
  )
  tick()
  tick()
  expect(runs).toBe(1)
  held.resolve()
  await job.close()
  tick()
  expect(runs).toBe(1)
})

test('job when needed: has no timer at rest', () => {
  jest.useFakeTimers()
  let runs = 0
  const job = whenNeeded(100, () => void runs++)
  expect(jest.getTimerCount()).toBe(0)
  job.need()
  job.need()
  expect(jest.getTimerCount()).toBe(1)
  jest.advanceTimersByTime(1_000)
  expect([runs, jest.getTimerCount()]).toEqual([1, 0])
  job.need()
  jest.advanceTimersByTime(100)
  expect(runs).toBe(2)
})

test('job when needed: waits for its current run, and runs once more for a need during it', async () => {
  jest.useFakeTimers()
  const runs: PromiseWithResolvers<void>[] = []
  const job = whenNeeded(100, () => {
    const held = Promise.withResolvers<void>()
    runs.push(held)
    return held.promise
  })
  job.need()
  jest.advanceTimersByTime(100)
  job.need()
  jest.advanceTimersByTime(1_000)
  expect(runs).toHaveLength(1)
  runs[0]?.reject(new Error('failed'))
  // Three turns: the failure, its end, and the next start.
  for (let turn = 0; turn < 3; turn++) await Promise.resolve()
  jest.advanceTimersByTime(100)
  expect(runs).toHaveLength(2)
  const closing = job.close()
  runs[1]?.resolve()
  await closing
  job.need()
  expect(jest.getTimerCount()).toBe(0)
})

test('following job: runs after writes, at rest once per minute, and again after a failure', async () => {
  jest.useFakeTimers()
  let [runs, isAway] = [0, false]
  let wrote = () => {}
  const work = async () => {
    runs++
    if (isAway) throw new Error('away')
  }
  const after = async (ms: number) => {
    jest.advanceTimersByTime(ms)
    for (let turn = 0; turn < 10; turn++) await Promise.resolve()
    return runs
  }
  const job = startFollowing(500, work, listener => {
    wrote = listener
  })
  expect(await after(500)).toBe(1)
  expect(await after(59_000)).toBe(1)
  expect(await after(500)).toBe(2)
  wrote()
  wrote()
  expect([await after(499), await after(1), await after(500)]).toEqual([2, 3, 3])
  isAway = true
  wrote()
  expect([await after(500), await after(500)]).toEqual([4, 5])
  isAway = false
  expect([await after(500), await after(500)]).toEqual([6, 6])
  await job.close()
  wrote()
  expect(jest.getTimerCount()).toBe(0)
})
