/** Two gateways on one real Postgres, one 90 s ahead of it and the other 90 s behind, must decide alike. */
import { afterAll, beforeAll, expect } from 'bun:test'
import { join } from 'node:path'
import { type Database, openDatabase } from '../../src/database/database.ts'
import { eventually } from '../harness/eventually.ts'
import { needed, testNeeding } from '../harness/needs.ts'
import { patientStore } from '../harness/patience.ts'
import { type PrivatePostgres, startPostgres } from '../harness/postgres.ts'
import { dataFolder, type GatewayProcess, startProcess, stopProcesses } from '../harness/processes.ts'
import { createKeyFor, owner, type Person, sendRequest } from '../harness/users.ts'

let postgres: PrivatePostgres | null = null
let database: Database | null = null
let gateways: readonly [GatewayProcess, GatewayProcess] | null = null

beforeAll(async () => {
  postgres = await startPostgres()
  if (postgres === null) return
  const { url } = postgres
  database = openDatabase(url, { connections: 1, ...patientStore })
  const start = (shiftMs: number) =>
    startProcess(dataFolder(), {
      DATABASE_URL: url,
      JWT_SECRET: 'the secret of both, of 32 bytes at least',
      TRUSTED_PROXIES: '127.0.0.1',
      BUN_OPTIONS: `--preload=${join(import.meta.dir, '..', 'harness', 'shifted-date.ts')}`,
      CLOCK_SHIFT_MS: String(shiftMs),
    })
  gateways = await Promise.all([start(90_000), start(-90_000)])
}, 240_000)
afterAll(async () => {
  await stopProcesses()
  await database?.close()
  await postgres?.stop()
}, 240_000)

function skewed(title: string, body: (both: readonly [GatewayProcess, GatewayProcess]) => Promise<void>) {
  testNeeding('postgres', title, () => body(needed(gateways)), 60_000)
}

/** Returns the response of each gateway to a short prompt under `key`. */
const asked = (both: readonly GatewayProcess[], key: string) =>
  Promise.all(
    both.map(async gatewayProcess => (await gatewayProcess.chat(key, 'Hello', { max_output_tokens: 8 })).status),
  )

/** Creates a key that expires in `seconds` by Postgres' clock, before any gateway has seen it. */
async function endingKey(gateway: GatewayProcess, person: Person, seconds: number): Promise<string> {
  const { id, key } = await createKeyFor(gateway, person)
  await database?.run(
    ({ sql }) =>
      sql`update api_keys set expires_at = clock_timestamp() + make_interval(secs => ${seconds}) where id = ${id}`,
  )
  return key
}

skewed('the gateways’ clocks are wrong, and each says so', async both => {
  for (const { output } of both)
    await eventually(() => /clock_offset_changed.*by -?(90|89)\d\d\d ms/.test(output()), 10_000)
})

skewed('a session signed by one is taken by the other, and is not older or newer there', async both => {
  for (const signer of both) {
    const { token } = await owner(signer)
    for (const gateway of both) expect((await sendRequest(gateway, 'GET', '/api/v1/keys', { token })).status).toBe(200)
    const claims = JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString())
    expect(Math.abs(claims.iat * 1000 - Date.now())).toBeLessThan(15_000)
  }
})

skewed('a key works on both until it ends, and on neither from then on', async both => {
  const person = await owner(both[0])
  const inAMinute = new Date(Date.now() + 60_000).toISOString()
  for (const gateway of both) {
    const made = await sendRequest<{ key: string }>(gateway, 'POST', '/api/v1/keys', {
      token: person.token,
      body: { name: 'for a minute', expires_at: inAMinute },
    })
    expect(made.status).toBe(201)
    expect(await asked(both, made.body.key)).toEqual([200, 200])
  }
  expect(await asked(both, await endingKey(both[0], person, -60))).toEqual([401, 401])
})

skewed('a rotated key works on both for as long as it overlaps', async both => {
  for (const gateway of both) {
    const person = await owner(gateway)
    const { id, key } = await createKeyFor(gateway, person)
    const rotated = await sendRequest<{ key: string }>(gateway, 'POST', `/api/v1/keys/${id}/rotate`, {
      token: person.token,
      body: { overlap_seconds: 60 },
    })
    expect(rotated.status).toBe(201)
    expect(await asked(both, key)).toEqual([200, 200])
    expect(await asked(both, rotated.body.key)).toEqual([200, 200])
  }
})

skewed('grace lasts on both, and is over on both', async both => {
  for (const [seconds, statuses] of [
    [60, [200, 200]],
    [-60, [402, 402]],
  ] as const) {
    const person = await owner(both[0])
    await database?.run(
      ({ sql }) => sql`
        update accounts set plan = 'usage', grace_ends_at = clock_timestamp() + make_interval(secs => ${seconds})
        where id = ${person.accountId}`,
    )
    const { key } = await createKeyFor(both[0], person)
    expect(await asked(both, key)).toEqual([...statuses])
  }
})
