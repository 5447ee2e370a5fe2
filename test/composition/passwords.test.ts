import { expect, test } from 'bun:test'
import { createPasswords } from '../../src/composition/passwords.ts'
import { GatewayError } from '../../src/core/validation/errors.ts'

/** Hashing is slow by design, and the machine may be busy. */
const hangMs = 60_000
/** Where only the order counts, or one time against another. */
const cheap = { memoryCost: 2_048, timeCost: 3 }

test(
  'P1 the sixty-fifth in line is told to come back, and those before are served',
  async () => {
    const passwords = createPasswords(cheap)
    const attempts = Array.from({ length: 65 }, (_, index) => passwords.verify('a password', null, `10.0.0.${index}`))
    const outcomes = await Promise.allSettled(attempts)
    expect(outcomes.slice(0, 64).every(({ status }) => status === 'fulfilled')).toBe(true)
    expect(outcomes[64]).toMatchObject({
      status: 'rejected',
      reason: { code: 'service_unavailable', retryAfterMs: 1000 },
    })
    const hash = await passwords.hash('a password', null)
    expect(await passwords.verify('a password', hash, null)).toBe('right')
  },
  hangMs,
)

test(
  'P1 no more than four are hashed at once: the fifth takes a turn of its own',
  async () => {
    const passwords = createPasswords()
    const order: number[] = []
    const hashes = Array.from({ length: 12 }, (_, index) =>
      passwords.hash('a password', null).then(() => order.push(index)),
    )
    await Promise.race(hashes)
    expect(order[0]).toBeLessThan(4)
    await Promise.all(hashes)
    // Whoever comes in before all but three that stood ahead of it was hashed beside more than three others.
    for (const [place, index] of order.entries()) expect(index - place).toBeLessThan(4)
  },
  hangMs,
)

test(
  'password hashing: serves another address within two turns when one address fills its line',
  async () => {
    const passwords = createPasswords()
    const order: string[] = []
    const ask = (name: string, address: string) =>
      passwords.verify('a password', null, address).then(
        () => order.push(name),
        (error: unknown) => order.push(error instanceof GatewayError ? `${name} ${error.code}` : 'another failure'),
      )
    const flood = Array.from({ length: 100 }, () => ask('flood', '203.0.113.7'))
    const others = [ask('first', '198.51.100.1'), ask('second', '198.51.100.2')]
    await Promise.all([...flood, ...others])
    const refused = order.filter(one => one === 'flood ip_rate_limited')
    expect(refused).toHaveLength(92)
    // Two turns of the flood run beside them, and one more may end a moment before.
    const served = order.filter(one => one !== 'flood ip_rate_limited')
    expect(served).toHaveLength(10)
    expect(served.slice(0, 6)).toContain('first')
    expect(served.slice(0, 6)).toContain('second')
    // The line is free again.
    expect(await passwords.verify('a password', null, '203.0.113.7')).toBe('wrong')
  },
  hangMs,
)

test(
  'P4 an unknown address takes as long as a wrong password',
  async () => {
    const passwords = createPasswords(cheap)
    const hash = await passwords.hash('a password', null)
    const samples: Record<'known' | 'unknown', number[]> = { known: [], unknown: [] }
    for (let round = 0; round < 40; round++)
      for (const [name, one] of [
        ['known', hash],
        ['unknown', null],
      ] as const) {
        const started = performance.now()
        await passwords.verify('not the password', one, null)
        samples[name].push(performance.now() - started)
      }
    const median = (values: number[]) => values.toSorted((a, b) => a - b)[values.length / 2] ?? 0
    const ratio = median(samples.known) / median(samples.unknown)
    // A missing hash would make it 0. Neighbors on the machine move it by a fifth.
    expect(ratio).toBeGreaterThan(0.6)
    expect(ratio).toBeLessThan(1.7)
  },
  hangMs,
)
