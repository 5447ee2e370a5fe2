/**
 * The client library against a running gateway: in Bun from its source; in Node, Deno and Chromium, if installed, as
 * packed.
 */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { copyFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { eq } from 'drizzle-orm'
import packageJson from '../../package.json'
import type * as client from '../../src/client/gateway.ts'
import { toError } from '../../src/client/to-error.ts'
import { type ErrorCode, errorBody, errorTable, GatewayError } from '../../src/core/validation/errors.ts'
import { accounts } from '../../src/database/tables.ts'
import { errorResponse } from '../../src/http/error-response.ts'
import { chromiumPath } from '../dashboard/chromium.ts'
import { newAccount } from '../harness/account.ts'
import { eventually } from '../harness/eventually.ts'
import { type Gateway, startGateway } from '../harness/gateway.ts'
import { needed, reportSkipped, testNeeding } from '../harness/needs.ts'
import { addMember, createKeyFor, owner } from '../harness/users.ts'
import { type Context, checks } from './checks.ts'
import { callsFromElsewhere, checksOnPage } from './page.ts'
import { formatted, wirePath, wireTypes } from './wire.ts'

// The first test of a runtime waits for all of its checks: a bound against a hang.
setDefaultTimeout(240_000)

const root = new URL('../..', import.meta.url).pathname
const tsc = join(root, 'node_modules/.bin/tsc')
const folder = mkdtempSync(join(tmpdir(), 'gateway-ai-client-'))
const node = Bun.which('node')
const deno = Bun.which('deno')

const chromium = chromiumPath()
/** The library as created by `bun run client:pack`, installed like by a package manager. */
const installed = join(folder, 'node_modules/gateway-ai')

let gateway: Gateway
const runs: Record<string, Promise<Record<string, string>>> = {}
beforeAll(async () => {
  gateway = await startGateway({ TRUSTED_PROXIES: '127.0.0.1' })
  // Before the compiler and the runtimes keep the machine busy: an account route waits at most a second for Postgres.
  const ownContext = await newContext(join(root, 'src/client/gateway.ts'))
  const nodeContext = node === null ? null : await newContext('gateway-ai/client')
  const denoContext = deno === null ? null : await newContext('gateway-ai/client')
  const pageContext = chromium === null ? null : await newContext('')
  const built = build()
  const script = join(folder, 'run.js')
  runs.Bun = run([process.execPath, join(import.meta.dir, 'run.ts')], ownContext)
  if (node !== null && nodeContext !== null) runs.Node = built.then(() => run([node, script], nodeContext))
  if (deno !== null && denoContext !== null)
    runs.Deno = built.then(() => run([deno, 'run', '--allow-all', '--node-modules-dir=manual', script], denoContext))
  if (chromium !== null && pageContext !== null)
    runs.Chromium = built.then(() => checksOnPage(gateway, chromium, installed, pageContext))
}, 240_000)
afterAll(async () => {
  await gateway.stop()
  rmSync(folder, { recursive: true, force: true })
})

/** Installs the package and places the checks beside it. */
async function build(): Promise<void> {
  const built = Bun.spawn([tsc, '-p', join(root, 'src/client'), '--outDir', installed], { stdout: 'pipe' })
  const said = await built.stdout.text()
  if ((await built.exited) !== 0) throw new Error(said)
  copyFileSync(join(root, 'src/client/package.json'), join(installed, 'package.json'))
  writeFileSync(join(folder, 'package.json'), '{"type":"module","dependencies":{"gateway-ai":"*"}}')
  await Bun.build({ entrypoints: [join(import.meta.dir, 'run.ts')], target: 'node', outdir: folder })
}

/** Runs every check in one runtime. Each runtime has its own accounts, so that one does not use up another's limits. */
async function run(command: readonly string[], context: Context): Promise<Record<string, string>> {
  const child = Bun.spawn([...command], {
    cwd: folder,
    env: { ...process.env, CLIENT_CONTEXT: JSON.stringify(context) },
    stdout: 'pipe',
    stderr: 'pipe',
  })
  const [said, complained] = await Promise.all([child.stdout.text(), child.stderr.text()])
  if ((await child.exited) !== 0) throw new Error(complained)
  return JSON.parse(said)
}

async function newContext(specifier: string): Promise<Context> {
  const person = await owner(gateway)
  const unpaid = await newAccount(gateway)
  await gateway.deps.database.run(({ orm }) =>
    orm
      .update(accounts)
      .set({ graceEndsAt: new Date(0) })
      .where(eq(accounts.id, unpaid.id)),
  )
  const reference = (await (await fetch(`${gateway.url}/openapi.json`)).json()) as { paths: object }
  return {
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
    owner: { token: person.token, key: (await createKeyFor(gateway, person)).key },
    member: { token: (await addMember(gateway, person, 'member')).token },
    paths: Object.keys(reference.paths),
  }
}

const runtimes = [
  ['Bun', process.execPath, []],
  ['Node', node, ['node']],
  ['Deno', deno, ['deno']],
  ['Chromium', chromium, ['chromium']],
] as const
for (const [runtime, path, need] of runtimes)
  describe(`client in ${runtime}`, () => {
    if (path === null) reportSkipped(need, 'runs every check')
    else test.each(Object.keys(checks))('%s', async name => expect((await runs[runtime])?.[name]).toBe('ok'))
  })

testNeeding(
  'chromium',
  'client: gets free endpoints and wait times from another origin, but nothing that needs a key [H4]',
  async () => {
    await Promise.all(Object.values(runs))
    const { waits, ...rest } = await callsFromElsewhere(gateway, needed(chromium), installed)
    expect(rest).toEqual({ models: true, estimate: true, chatIsKeptFromIt: true })
    expect([waits.length > 0, waits.every(seconds => seconds > 0)]).toEqual([true, true])
  },
)

describe('example of docs/clients/gateway-client.md', () => {
  const [, example = ''] =
    /```ts\n(import [^`]*'gateway-ai\/client'[\s\S]*?)```/.exec(
      readFileSync(join(root, 'docs/clients/gateway-client.md'), 'utf8'),
    ) ?? []

  test.each([
    ['bundler', 'ESNext'],
    ['NodeNext', 'NodeNext'],
  ])('compiles in the strictest project with module resolution %s', async (moduleResolution, module) => {
    await runs.Node
    const project = join(folder, `tsconfig.${moduleResolution}.json`)
    const strict = {
      strict: true,
      exactOptionalPropertyTypes: true,
      noUncheckedIndexedAccess: true,
      skipLibCheck: false,
    }
    const typeRoots = [join(root, 'node_modules/@types')]
    const compilerOptions = {
      ...strict,
      moduleResolution,
      module,
      target: 'ES2022',
      noEmit: true,
      types: ['node'],
      typeRoots,
    }
    writeFileSync(join(folder, 'example.ts'), example)
    writeFileSync(project, JSON.stringify({ compilerOptions, files: ['example.ts'] }))
    expect(Bun.spawnSync([tsc, '-p', project]).stdout.toString()).toBe('')
  })

  testNeeding('node', 'runs unchanged except for key and URL', async () => {
    await runs.Node
    const here = example.replace('gw_live_…', gateway.key).replace('http://127.0.0.1:3000', gateway.url)
    const script = join(folder, 'example.js')
    writeFileSync(script, new Bun.Transpiler({ loader: 'ts' }).transformSync(here))
    const child = Bun.spawn([needed(node), script], { stdout: 'pipe', stderr: 'pipe' })
    const [said, complained] = await Promise.all([child.stdout.text(), child.stderr.text()])
    expect([await child.exited, complained, said.length > 50]).toEqual([0, '', true])
  })
})

test("client package: has the gateway's version and no dependencies", () => {
  const packed = JSON.parse(readFileSync(join(root, 'src/client/package.json'), 'utf8'))
  expect([packed.name, packed.version, packed.dependencies]).toEqual(['gateway-ai', packageJson.version, undefined])
})

test("client: aborts upstream calls with the client's requests", async () => {
  await Promise.all(Object.values(runs))
  const stats = () => gateway.deps.simulator?.stats()
  await eventually(() => stats()?.exchanges.every(({ outcome }) => outcome !== 'open') === true)
  // Each runtime left four started streams; other abandoned requests may not have reached a provider.
  expect(stats()?.aborted ?? 0).toBeGreaterThanOrEqual(4 * Object.keys(runs).length)
})

/** The class of each code, with its `limit`. */
const thrown: Readonly<Record<ErrorCode, keyof typeof client>> = {
  invalid_request: 'InvalidRequestError',
  invalid_json: 'InvalidRequestError',
  context_length_exceeded: 'InvalidRequestError',
  constraints_unmet: 'InvalidRequestError',
  unsupported_parameter: 'InvalidRequestError',
  previous_response_not_found: 'InvalidRequestError',
  model_deprecated: 'InvalidRequestError',
  conversation_stopped: 'InvalidRequestError',
  content_blocked: 'ContentBlockedError',
  invalid_api_key: 'AuthenticationError',
  invalid_token: 'AuthenticationError',
  invalid_credentials: 'AuthenticationError',
  two_factor_required: 'AuthenticationError',
  payment_required: 'PaymentRequiredError',
  account_paused: 'PaymentRequiredError',
  forbidden: 'PermissionDeniedError',
  two_factor_setup_required: 'PermissionDeniedError',
  misdirected: 'PermissionDeniedError',
  model_not_found: 'NotFoundError',
  not_found: 'NotFoundError',
  method_not_allowed: 'InvalidRequestError',
  conflict: 'ConflictError',
  already_completed: 'ConflictError',
  body_too_large: 'InvalidRequestError',
  upgrade_required: 'InvalidRequestError',
  requests_per_minute_exceeded: 'RateLimitError',
  concurrent_requests_exceeded: 'RateLimitError',
  request_bytes_exceeded: 'RateLimitError',
  ip_rate_limited: 'RateLimitError',
  daily_tokens_exceeded: 'QuotaExceededError',
  daily_cost_exceeded: 'QuotaExceededError',
  monthly_cost_exceeded: 'QuotaExceededError',
  upstream_rate_limited: 'RateLimitError',
  upstream_failed: 'UpstreamError',
  no_model_available: 'UpstreamError',
  service_unavailable: 'UpstreamError',
  upstream_timeout: 'UpstreamError',
}

test.each(Object.entries(thrown))('client: has an error class for every code: %s is a %s', (code, name) => {
  const error = new GatewayError(code as ErrorCode, 'Do this next.', { retryAfterMs: 1_500, param: 'prompt' })
  const { headers } = errorResponse(error, 'req_1')
  const told = toError(error.status, errorBody(error, 'req_1'), headers)
  expect([told.name, told.constructor.name]).toEqual([name, name])
  expect(told).toMatchObject({
    status: errorTable[code as ErrorCode].status,
    message: error.message,
    param: 'prompt',
  })
  expect(told).toMatchObject({ requestId: 'req_1', retryAfter: 1.5, shouldRetry: null })
})

test("client: has the types of the gateway's schemas (`bun run client:types`)", () => {
  expect(readFileSync(wirePath, 'utf8')).toBe(formatted(wireTypes()))
})

test('client: imports only its own files', () => {
  for (const name of new Bun.Glob('*.ts').scanSync(join(root, 'src/client')))
    for (const [, target] of readFileSync(join(root, 'src/client', name), 'utf8').matchAll(/from '([^']+)'/g))
      expect([name, target]).toEqual([name, expect.stringMatching(/^\.\/[\w-]+\.ts$/)])
})
