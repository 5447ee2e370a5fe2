/** The client library against a live gateway, run by Bun from its source and by Node from what is built of it. */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { eq } from 'drizzle-orm'
import { errorOf } from '../../src/client/error-of.ts'
import type * as client from '../../src/client/gateway.ts'
import { type ErrorCode, errorBody, errorTable, GatewayError } from '../../src/core/errors.ts'
import { failureResponse } from '../../src/http/failures.ts'
import { accounts } from '../../src/stores/tables.ts'
import { newAccount } from '../harness/account.ts'
import { type Gateway, startGateway } from '../harness/gateway.ts'
import { colleague, keyOf, owner } from '../harness/people.ts'
import { type Context, checks } from './checks.ts'
import { formatted, wirePath, wireTypes } from './wire.ts'

setDefaultTimeout(60_000)

const root = new URL('../..', import.meta.url).pathname
const folder = mkdtempSync(join(tmpdir(), 'gateway-ai-client-'))
const node = Bun.which('node')

let gateway: Gateway
const runs: Record<string, Promise<Record<string, string>>> = {}
beforeAll(async () => {
  gateway = await startGateway({ TRUSTED_PROXIES: '127.0.0.1' })
  runs.Bun = run([process.execPath, join(import.meta.dir, 'checks.ts')], join(root, 'src/client/gateway.ts'))
  if (node !== null) runs.Node = build().then(checks => run([node, checks], join(folder, 'client/gateway.js')))
})
afterAll(async () => {
  await gateway.stop()
  rmSync(folder, { recursive: true, force: true })
})

/** Builds the library as `npm pack` does, and the checks beside it; returns the checks' path. */
async function build(): Promise<string> {
  writeFileSync(join(folder, 'package.json'), '{"type":"module"}')
  const tsc = join(root, 'node_modules/.bin/tsc')
  const built = Bun.spawn([tsc, '-p', join(root, 'src/client'), '--outDir', join(folder, 'client')], { stdout: 'pipe' })
  const said = await built.stdout.text()
  if ((await built.exited) !== 0) throw new Error(said)
  const path = join(folder, 'checks.js')
  const source = readFileSync(join(import.meta.dir, 'checks.ts'), 'utf8')
  writeFileSync(path, new Bun.Transpiler({ loader: 'ts' }).transformSync(source))
  return path
}

/** Every check's outcome in one runtime. Each has accounts of its own: what one uses up, the other has not. */
async function run(command: readonly string[], specifier: string): Promise<Record<string, string>> {
  const person = await owner(gateway)
  const unpaid = await newAccount(gateway)
  await gateway.deps.database.run(({ orm }) =>
    orm
      .update(accounts)
      .set({ graceEndsAt: new Date(0) })
      .where(eq(accounts.id, unpaid.id)),
  )
  const reference = (await (await fetch(`${gateway.url}/openapi.json`)).json()) as { paths: object }
  const context: Context = {
    specifier,
    url: gateway.url,
    key: (
      await newAccount(gateway, {
        requestsPerMinute: 10_000,
        concurrentRequests: 50,
        dailyTokens: 1e9,
        dailyCostMicrocents: 1e12,
      })
    ).key,
    hasty: (await newAccount(gateway, { requestsPerMinute: 1 })).key,
    spent: (await newAccount(gateway, { dailyTokens: 1 })).key,
    single: (await newAccount(gateway, { concurrentRequests: 1, requestsPerMinute: 1_000 })).key,
    unpaid: unpaid.key,
    owner: { token: person.token, key: (await keyOf(gateway, person)).key },
    member: { token: (await colleague(gateway, person, 'member')).token },
    paths: Object.keys(reference.paths),
  }
  const child = Bun.spawn([...command], {
    env: { ...process.env, CLIENT_CONTEXT: JSON.stringify(context) },
    stdout: 'pipe',
    stderr: 'pipe',
  })
  const [said, complained] = await Promise.all([child.stdout.text(), child.stderr.text()])
  if ((await child.exited) !== 0) throw new Error(complained)
  return JSON.parse(said)
}

for (const runtime of ['Bun', 'Node'])
  describe(`in ${runtime}`, () => {
    test.each(Object.keys(checks))('%s', async name => {
      const outcomes = runs[runtime]
      if (outcomes === undefined) return void process.stdout.write(`did not run: ${runtime} is not here\n`)
      expect((await outcomes)[name]).toBe('ok')
    })
  })

test('what callers give up, the gateway gives up upstream', async () => {
  await Promise.all(Object.values(runs))
  const stats = () => gateway.deps.simulator?.stats()
  const endsAt = performance.now() + 2_000
  while (stats()?.exchanges.some(({ outcome }) => outcome === 'open') && performance.now() < endsAt) await Bun.sleep(10)
  expect(stats()?.exchanges.filter(({ outcome }) => outcome === 'open')).toEqual([])
  // Each runtime gave up five streams, and two chats that it would not wait for.
  expect(stats()?.aborted ?? 0).toBeGreaterThanOrEqual(7 * Object.keys(runs).length)
})

/** What each code is thrown as, and with which `limit`. */
const thrown: Readonly<Record<ErrorCode, keyof typeof client>> = {
  invalid_request: 'InvalidRequestError',
  invalid_json: 'InvalidRequestError',
  context_length_exceeded: 'InvalidRequestError',
  unsupported_parameter: 'InvalidRequestError',
  model_deprecated: 'InvalidRequestError',
  content_blocked: 'ContentBlockedError',
  invalid_api_key: 'AuthenticationError',
  invalid_token: 'AuthenticationError',
  invalid_credentials: 'AuthenticationError',
  payment_required: 'PaymentRequiredError',
  forbidden: 'PermissionDeniedError',
  misdirected: 'PermissionDeniedError',
  model_not_found: 'NotFoundError',
  not_found: 'NotFoundError',
  conflict: 'ConflictError',
  already_completed: 'ConflictError',
  body_too_large: 'InvalidRequestError',
  requests_per_minute_exceeded: 'RateLimitError',
  concurrent_requests_exceeded: 'RateLimitError',
  ip_rate_limited: 'RateLimitError',
  daily_tokens_exceeded: 'QuotaExceededError',
  daily_cost_exceeded: 'QuotaExceededError',
  upstream_failed: 'UpstreamError',
  no_model_available: 'UpstreamError',
  service_unavailable: 'UpstreamError',
  upstream_timeout: 'UpstreamError',
}

test.each(Object.entries(thrown))('every code of the gateway has its class: %s is a %s', (code, name) => {
  const error = new GatewayError(code as ErrorCode, 'Do this next.', { retryAfterMs: 1_500, param: 'prompt' })
  const { headers } = failureResponse(error, 'req_1')
  const told = errorOf(error.status, errorBody(error, 'req_1'), headers)
  expect([told.name, told.constructor.name]).toEqual([name, name])
  expect(told).toMatchObject({
    status: errorTable[code as ErrorCode].status,
    message: 'Do this next.',
    param: 'prompt',
  })
  expect(told).toMatchObject({ requestId: 'req_1', retryAfter: 1.5, shouldRetry: null })
})

test('the types are those of the gateway’s schemas: `bun run client:types` writes them', () => {
  expect(readFileSync(wirePath, 'utf8')).toBe(formatted(wireTypes()))
})

test('the library imports nothing but itself', () => {
  for (const name of new Bun.Glob('*.ts').scanSync(join(root, 'src/client')))
    for (const [, target] of readFileSync(join(root, 'src/client', name), 'utf8').matchAll(/from '([^']+)'/g))
      expect([name, target]).toEqual([name, expect.stringMatching(/^\.\/[\w-]+\.ts$/)])
})
