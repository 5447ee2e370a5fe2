import { describe, expect, test } from 'bun:test'
import { createWorkQueue, QueueFull } from '../../src/database/work-queue.ts'

const never = new AbortController().signal

function held() {
  const { promise, resolve } = Promise.withResolvers<void>()
  return { work: () => promise, end: resolve }
}

describe('work queue', () => {
  test('starts as many works as there are places, others in order of arrival', async () => {
    const queue = createWorkQueue({ places: 2, maximumWaiting: 10 })
    const started: number[] = []
    const works = Array.from({ length: 5 }, held)
    const ended = works.map(({ work }, index) =>
      queue.run(() => {
        started.push(index)
        return work()
      }, never),
    )
    expect(started).toEqual([0, 1])
    works[1]?.end()
    await ended[1]
    expect(started).toEqual([0, 1, 2])
    for (const { end } of works) end()
    await Promise.all(ended)
    expect(started).toEqual([0, 1, 2, 3, 4])
    expect(queue.waiting()).toBe(0)
  })

  test('never starts a work that is aborted while it waits', async () => {
    const queue = createWorkQueue({ places: 1, maximumWaiting: 10 })
    const first = held()
    const running = queue.run(first.work, never)
    const givenUp = new AbortController()
    let hasStarted = false
    const late = queue.run(async () => {
      hasStarted = true
    }, givenUp.signal)
    givenUp.abort(new Error('late'))
    await expect(late).rejects.toThrow('late')
    first.end()
    await running
    expect(hasStarted).toBe(false)
    expect(await queue.run(async () => 'next', never)).toBe('next')
  })

  test('rejects a work at once when too many wait', async () => {
    const queue = createWorkQueue({ places: 1, maximumWaiting: 2 })
    const works = Array.from({ length: 3 }, held)
    const ended = works.map(({ work }) => queue.run(work, never))
    await expect(queue.run(async () => {}, never)).rejects.toBeInstanceOf(QueueFull)
    for (const { end } of works) end()
    await Promise.all(ended)
  })

  test('starts an urgent work before those that wait, however many they are', async () => {
    const queue = createWorkQueue({ places: 1, maximumWaiting: 2 })
    const first = held()
    const order: string[] = []
    const ended = [
      queue.run(first.work, never),
      ...['one', 'two'].map(name => queue.run(async () => void order.push(name), never)),
      queue.run(async () => void order.push('urgent'), never, true),
    ]
    expect(queue.waiting()).toBe(3)
    first.end()
    await Promise.all(ended)
    expect(order).toEqual(['urgent', 'one', 'two'])
  })

  test('frees a place when a work fails', async () => {
    const queue = createWorkQueue({ places: 1, maximumWaiting: 2 })
    await expect(queue.run(() => Promise.reject(new Error('refused')), never)).rejects.toThrow('refused')
    expect(await queue.run(async () => 'next', never)).toBe('next')
  })

  test('starts waiting works after a reset, and ignores the end of earlier ones', async () => {
    const queue = createWorkQueue({ places: 1, maximumWaiting: 10 })
    const stuck = held()
    const stuckEnd = queue.run(stuck.work, never)
    const second = held()
    const secondEnd = queue.run(second.work, never)
    let thirdStarted = false
    const thirdEnd = queue.run(async () => {
      thirdStarted = true
    }, never)
    queue.reset()
    stuck.end()
    await stuckEnd
    expect(thirdStarted).toBe(false)
    second.end()
    await Promise.all([secondEnd, thirdEnd])
    expect(thirdStarted).toBe(true)
  })
})

test('work queue: keeps a place for urgent works beside works that hold theirs for long', async () => {
  const queue = createWorkQueue({ places: 2, urgentPlaces: 1, maximumWaiting: 10 })
  const [long, waiting, urgent] = [held(), held(), held()]
  const started: string[] = []
  const run = (name: string, { work }: ReturnType<typeof held>, isUrgent = false) =>
    queue.run(
      () => {
        started.push(name)
        return work()
      },
      never,
      isUrgent,
    )
  const ended = [run('long', long), run('waiting', waiting), run('urgent', urgent, true)]
  expect(started).toEqual(['long', 'urgent'])
  urgent.end()
  await ended[2]
  expect(started).toEqual(['long', 'urgent'])
  long.end()
  waiting.end()
  await Promise.all(ended)
  expect(started).toEqual(['long', 'urgent', 'waiting'])
})
