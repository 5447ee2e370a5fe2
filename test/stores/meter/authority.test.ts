import { afterEach, expect, test } from 'bun:test'
import { GatewayError } from '../../../src/core/errors.ts'
import { type Authority, startAuthority } from '../../../src/stores/meter/authority.ts'
import { type Claims, noAmounts, type Others } from '../../../src/stores/meter/claims.ts'
import { eventually } from '../database.contract.ts'
import { noClaims } from '../support.ts'

const open: Authority[] = []
afterEach(async () => {
  for (const one of open.splice(0)) await one.close()
})

/** An authority whose calls to Postgres go as `beat` says, and take as long as it says. */
function rig(beat: (call: number) => Others | null, tookMs: () => number) {
  let time = 0
  let calls = 0
  const left: number[] = []
  const claims: Claims = {
    ...noClaims,
    async beat() {
      time += tookMs()
      const answer = beat(++calls)
      if (answer === null) throw new GatewayError('service_unavailable', 'No answer within 1000 ms.')
      return answer
    },
    enter: async (_, wanted) => wanted,
  }
  const authority = startAuthority({
    claims,
    monotonic: () => {
      time += 1e-6
      return time
    },
    seesRedis: () => true,
    outOf: () => [],
    left: () => {},
    mustLeave: partition => void left.push(partition),
  })
  open.push(authority)
  const timer = setInterval(() => {
    time += 100
  }, 100)
  const stop = authority.close
  return {
    authority: Object.assign(authority, {
      async close() {
        clearInterval(timer)
        await stop()
      },
    }),
    left,
    calls: () => calls,
    sleep(milliseconds: number) {
      time += milliseconds
    },
  }
}

const nobody: Others = { count: 0, without: 0, barred: 0, living: [] }

test('a Postgres that refuses twice is away', async () => {
  const { authority, calls } = rig(
    () => null,
    () => 0,
  )
  await eventually(() => calls() === 2, 2_000)
  await Bun.sleep(0)
  expect(authority.readiness()).toBe('away')
})

test('a deadline that this process itself was too late for is no sign that Postgres is away, unless all is silent for seconds', async () => {
  const { authority, calls } = rig(
    () => null,
    () => 1_000,
  )
  const seen: string[] = []
  for (let call = 1; call <= 5; call++) {
    await eventually(() => calls() === call, 2_000)
    await Bun.sleep(0)
    seen.push(authority.readiness() === 'away' ? 'away' : 'there')
  }
  expect(seen.slice(0, 2)).toEqual(['there', 'there'])
  expect(seen.at(-1)).toBe('away')
})

test('a gateway that overslept hears first what others do without it, and leaves Redis', async () => {
  let others = nobody
  const { authority, left, sleep } = rig(
    () => others,
    () => 0,
  )
  expect(await authority.mayEnter(3)).toBe(true)
  expect(authority.overslept()).toBeNull()
  others = { ...nobody, count: 1, without: 1 << 3 }
  sleep(2_600)
  await authority.overslept()
  expect(left).toContain(3)
})

test('what was left while an earlier word was on its way is said again, with all that is out by then', async () => {
  const partition = 3
  const said: { partitions: number; out: number }[] = []
  let out = 20
  const held: (() => void)[] = []
  const authority = startAuthority({
    claims: {
      ...noClaims,
      enter: async (_, wanted) => wanted,
      leave: (_, partitions, all) => {
        said.push({ partitions, out: all[0]?.out.seats ?? 0 })
        return new Promise(done => held.push(done))
      },
    },
    monotonic: () => performance.now(),
    seesRedis: () => true,
    outOf: () => [{ accountId: 'acc_1', day: 20_000, out: { ...noAmounts, seats: out }, waiting: [] }],
    left: () => {},
    mustLeave: () => {},
  })
  open.push(authority)
  expect(await authority.mayEnter(partition)).toBe(true)
  const aside = authority.standAside(partition)
  await eventually(() => said.length === 1, 2_000)
  out = 44
  const left = authority.leave(partition)
  for (const go of held.splice(0)) go()
  await aside
  await eventually(() => said.length === 2, 2_000)
  for (const go of held.splice(0)) go()
  await left
  expect(said).toEqual([
    { partitions: 8, out: 20 },
    { partitions: 8, out: 44 },
  ])
})
