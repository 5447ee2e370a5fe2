import { expect, test } from 'bun:test'
import { createPasswords } from '../../../src/console/auth/password-hashing.ts'
import { GatewayError } from '../../../src/core/validation/errors.ts'

/** Hashing is slow by design, and the machine may be busy. */
const hangMs = 60_000
/** For tests in which only the order or a ratio of times counts. */
const cheap = { memoryCost: 2_048, timeCost: 3 }

test(
  'password hashing: rejects the sixty-fifth waiting hash and completes those before it [P1]',
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
  'password hashing: runs at most four hashes at once [P1]',
  async () => {
    const passwords = createPasswords()
    const order: number[] = []
    const hashes = Array.from({ length: 12 }, (_, index) =>
      passwords.hash('a password', null).then(() => order.push(index)),
    )
    await Promise.race(hashes)
    expect(order[0]).toBeLessThan(4)
    await Promise.all(hashes)
    // A hash that starts before more than three of those ahead of it have finished ran beside more than three others.
    for (const [place, index] of order.entries()) expect(index - place).toBeLessThan(4)
  },
  hangMs,
)

test(
  'password hashing: serves other addresses in between when one address fills its line',
  async () => {
    const passwords = createPasswords()
    const order: string[] = []
    const send = (name: string, address: string) =>
      passwords.verify('a password', null, address).then(
        () => order.push(name),
        (error: unknown) => order.push(error instanceof GatewayError ? `${name} ${error.code}` : 'another failure'),
      )
    const flood = Array.from({ length: 100 }, () => send('flood', '203.0.113.7'))
    const others = [send('first', '198.51.100.1'), send('second', '198.51.100.2')]
    await Promise.all([...flood, ...others])
    const refused = order.filter(text => text === 'flood ip_rate_limited')
    expect(refused).toHaveLength(92)
    // In order of arrival both would be the last two. Two hashes run at the same time, so that one may overtake the other.
    const served = order.filter(text => text !== 'flood ip_rate_limited')
    expect(served).toHaveLength(10)
    expect(served.indexOf('first')).toBeWithin(0, 8)
    expect(served.indexOf('second')).toBeWithin(0, 8)
    // The queue is empty again.
    expect(await passwords.verify('a password', null, '203.0.113.7')).toBe('wrong')
  },
  hangMs,
)

test(
  'password check: takes as long for an unknown address as for a wrong password [P4]',
  async () => {
    const passwords = createPasswords(cheap)
    const hash = await passwords.hash('a password', null)
    const samples: Record<'known' | 'unknown', number[]> = { known: [], unknown: [] }
    for (let round = 0; round < 40; round++)
      for (const [name, text] of [
        ['known', hash],
        ['unknown', null],
      ] as const) {
        const started = performance.now()
        await passwords.verify('not the password', text, null)
        samples[name].push(performance.now() - started)
      }
    const median = (values: number[]) => values.toSorted((a, b) => a - b)[values.length / 2] ?? 0
    const ratio = median(samples.known) / median(samples.unknown)
    // A missing hash would make it 0. Neighbors on the machine move it by a fifth and more.
    expect(ratio).toBeWithin(0.2, 5)
  },
  hangMs,
)
