/** An error of one account or call is no outage of Redis, and what an outage leaves is counted. */
import { afterAll, expect, setDefaultTimeout } from 'bun:test'
import type { UsageRecord } from '../../src/core/usage/usage-record.ts'
import { allowanceMs, renewMs, reportGraceMs } from '../../src/limits/constants.ts'
import type { Meter } from '../../src/limits/meter.ts'
import { eventually } from '../harness/eventually.ts'
import { needed, testNeeding } from '../harness/needs.ts'
import { startRedis } from '../harness/redis.ts'
import { admitted, settlement, wide } from './meter.contract.ts'
import { unit } from './racers.ts'
import { emptyLedger, sharedRig } from './rig.ts'

setDefaultTimeout(60_000)

const server = await startRedis()
afterAll(() => server?.stop())

type Rig = Awaited<ReturnType<typeof sharedRig>>

/** Cost of one request, in 1e-8 USD. */
const price = 1_000
const limits = { dailyCostMicrocents: 100 * price }

const request = (id: string, accountId = 'acc_1') => ({ ...unit(accountId, limits), requestId: id })

const getCode = (meter: Meter, ...of: Parameters<typeof request>) =>
  meter.admit(request(...of)).then(
    admission => (admission.admitted ? 'admitted' : admission.code),
    (cause: { code: string }) => cause.code,
  )

/** Admits and settles `count` requests. Returns how many were admitted. */
async function use(rig: Rig, meter: Meter, name: string, count: number): Promise<number> {
  for (let index = 0; index < count; index++) {
    const admission = await meter.admit(request(`${name}${index}`)).catch(() => null)
    if (admission === null || !admission.admitted) return index
    await meter.settle(settlement(admission.reservation, 11, price, rig.clock.now()))
  }
  return count
}

/** What the account can still pay for, in requests. */
async function getLeft(meter: Meter): Promise<number> {
  const { costMicrocents } = await meter.loadStatus('acc_1', { ...wide, ...limits })
  return costMicrocents.remaining / price
}

testNeeding('redis', 'shared meter: fails only the requests of an account that Redis has no counters of', async () => {
  const redis = needed(server)
  const events: string[] = []
  const rig = await sharedRig(redis, { onEvent: event => void events.push(event) })
  try {
    const open = admitted(await rig.meter.admit(request('open', 'acc_open')))
    expect(await getCode(rig.meter, 'known')).toBe('admitted')
    await redis.command('SET', 'gateway:{0}:account:acc_bad', 'x')
    await redis.command('SET', 'gateway:{0}:account:acc_open', 'x')
    const accounts = ['acc_bad', 'acc_1', 'acc_new']
    expect(await Promise.all(accounts.map(account => getCode(rig.meter, `of ${account}`, account)))).toEqual([
      'service_unavailable',
      'admitted',
      'admitted',
    ])
    await rig.meter.settle(settlement(open, 11, price, rig.clock.now()))
    // The abandoned admission and the settlement are not tried for ever, and the other accounts are renewed.
    for (let times = 0; times < 5; times++) {
      rig.clock.move(renewMs)
      await rig.meter.renew()
    }
    expect(rig.meter.isShared()).toBe(true)
    expect(await redis.command('ZCARD', 'gateway:{0}:account:acc_1:leases')).toBe(2)
    expect(new Set(events)).toEqual(new Set(['limits_failed']))
    const told = events.length
    await rig.meter.renew()
    // Only the report of the one that has had a request.
    expect(events.length).toBe(told + 1)
  } finally {
    await rig.close()
  }
})

testNeeding('redis', 'shared meter: fails only requests that the ledger or a script has no answer for', async () => {
  const ledger = {
    ...emptyLedger,
    load: async (accountId: string) => {
      if (accountId === 'acc_bad') throw Object.assign(new Error('permission denied'), { code: '42501' })
      return emptyLedger.load(accountId, 0, [])
    },
  }
  const rig = await sharedRig(needed(server), { ledger })
  try {
    const codes = await Promise.all([
      getCode(rig.meter, 'bad', 'acc_bad'),
      getCode(rig.meter, 'good'),
      rig.meter.admit({ ...request('fraction'), inputPrice: 0.5 }).catch((cause: { code: string }) => cause.code),
    ])
    expect(codes).toEqual(['service_unavailable', 'admitted', 'service_unavailable'])
    expect(rig.meter.isShared()).toBe(true)
    await rig.meter.renew()
    expect(rig.meter.isShared()).toBe(true)
  } finally {
    await rig.close()
  }
})

testNeeding(
  'redis',
  'shared meter: has its whole allowance in each further outage that Redis lost counters in',
  async () => {
    const redis = needed(server)
    const rig = await sharedRig(redis)
    const { meter } = rig
    try {
      for (let outage = 0; outage < 3; outage++) {
        await use(rig, meter, `before${outage}-`, 6)
        await meter.renew()
        await redis.crash()
        expect([outage, await use(rig, meter, `during${outage}-`, 6)]).toEqual([outage, 6])
        await redis.start()
        await eventually(() => meter.isShared(), 20_000)
        rig.clock.move(reportGraceMs)
        for (let times = 0; times < 8; times++) await meter.renew()
      }
      expect(await getLeft(meter)).toBe(100 - 3 * 12)
    } finally {
      await rig.close()
    }
  },
)

for (const isOpen of [false, true])
  testNeeding(
    'redis',
    `shared meter: counts once what a killed instance admitted in an outage when it ${isOpen ? 'was open' : 'had ended'}`,
    async () => {
      const redis = needed(server)
      const left: UsageRecord[] = []
      const write = (records: ReadonlyMap<string, UsageRecord>) => void left.push(...records.values())
      const rig = await sharedRig(redis, { checkpoints: { write } })
      const { meter: dead } = rig
      try {
        await use(rig, dead, 'before', 6)
        for (let times = 0; times < 2; times++) await dead.renew()
        const before = await getLeft(dead)
        await redis.command('CONFIG', 'SET', 'maxmemory', '1')
        if (isOpen) {
          const open = admitted(await dead.admit(request('open')))
          dead.checkpoint(open, () => settlement(open, 11, price, rig.clock.now()))
        } else {
          expect(await use(rig, dead, 'during', 4)).toBe(4)
          left.push(...rig.written)
        }
        await rig.kill(dead)
        await redis.command('CONFIG', 'SET', 'maxmemory', '0')
        const during = isOpen ? 1 : 4
        const successor = await rig.open()
        for (let times = 0; times < 2; times++) {
          successor.takeOver(left)
          await successor.renew()
          expect(await getLeft(successor)).toBe(before - during)
        }
        // The allowance of the dead instance ends later.
        rig.clock.move(allowanceMs + renewMs)
        await use(rig, successor, 'after', 1)
        for (let times = 0; times < 8; times++) await successor.renew()
        expect(await getLeft(successor)).toBe(100 - 6 - during - 1)
      } finally {
        await redis.command('CONFIG', 'SET', 'maxmemory', '0')
        await rig.close()
      }
    },
  )
