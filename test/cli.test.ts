/**
 * The operator's commands: beside a running gateway, without one, and on a real Postgres. Most run in this process,
 * since a separate one takes 500 ms to start; at least one of each kind runs as a process.
 */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, spyOn, test } from 'bun:test'
import { existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import packageJson from '../package.json'
import { execute } from '../src/commands/execute.ts'
import { totpCode } from '../src/console/auth/totp.ts'
import { shellCommand } from '../src/core/validation/errors.ts'
import { eventually } from './harness/eventually.ts'
import { needed, testNeeding } from './harness/needs.ts'
import { type PrivatePostgres, startPostgres } from './harness/postgres.ts'
import {
  dataFolder,
  type Environment,
  type Finished,
  freshFolder,
  type GatewayProcess,
  onEmbedded,
  run,
  startProcess,
  stopProcesses,
} from './harness/processes.ts'
import { addMember, sendRequest, signIn } from './harness/users.ts'

// Every test starts and ends processes.
setDefaultTimeout(240_000)

const owner = 'owner@gateway.local'
const folder = await freshFolder()
let gateway: GatewayProcess
let firstKey = ''
let postgres: PrivatePostgres | null = null

beforeAll(async () => {
  ;[gateway, postgres] = await Promise.all([startProcess(folder), startPostgres()])
  firstKey = /API key +(gw_live_\w+)/.exec(gateway.output())?.[1] ?? ''
}, 240_000)
afterAll(async () => {
  await stopProcesses()
  await postgres?.stop()
})

const getWords = (words: string | readonly string[]) =>
  typeof words === 'string' ? words.split(' ').filter(word => word !== '') : words

/** Runs a command in a separate process. */
const spawned = (words: string | readonly string[], environment: Environment = {}) =>
  run('cli.ts', getWords(words), { GATEWAY_DATA_DIR: folder, ...environment })

/** Runs a command in this process, one after another, with only `PATH` of its environment. */
async function command(words: string | readonly string[], environment: Environment = {}): Promise<Finished> {
  const own = process.env
  process.env = { PATH: own.PATH, GATEWAY_DATA_DIR: folder, ...environment }
  const [out, err] = [process.stdout, process.stderr].map(stream => spyOn(stream, 'write').mockReturnValue(true))
  const said = (stream: typeof out) => (stream?.mock.calls ?? []).map(([text]) => String(text)).join('')
  try {
    const code = await execute(getWords(words), packageJson.version)
    return { code, stdout: said(out), stderr: said(err) }
  } finally {
    process.env = own
    for (const stream of [out, err]) stream?.mockRestore()
  }
}

async function done(words: string | readonly string[], environment: Environment = {}, how = command): Promise<string> {
  const { code, stdout, stderr } = await how(words, environment)
  expect({ words, code, stderr }).toEqual({ words, code: 0, stderr: '' })
  return stdout
}

const asJson = async (words: string, environment: Environment = {}, how = command): Promise<Record<string, unknown>> =>
  JSON.parse(await done(`${words} --json`, environment, how))

const status = async (key: string) => (await gateway.chat(key, 'hello', { max_output_tokens: 16 })).status

/** Sends chats with `key` until one gets the status `wanted`. */
function untilStatus(key: string, wanted: number): Promise<void> {
  return eventually(async () => (await status(key)) === wanted, 15_000, 50)
}

/** Returns billing as the account's owner sees it. */
async function getBilling(email: string, password: string): Promise<Record<string, unknown>> {
  const person = await signIn(gateway, { email, password })
  return (await sendRequest(gateway, 'GET', '/api/v1/billing', { token: person?.token })).body
}

describe('CLI beside a running gateway', () => {
  test('creates an account and a key that work', async () => {
    const account = await asJson('accounts create New@Example.com --plan usage', {}, spawned)
    expect(account).toMatchObject({ email: 'new@example.com', plan: 'usage', limits: { requests_per_minute: 30 } })
    expect(account.password).toMatch(/^\w{20}$/)
    const key = await asJson('keys create new@example.com', {}, spawned)
    expect(key).toMatchObject({ name: 'operator key', revoked_at: null })
    expect(await status(String(key.key))).toBe(200)
  })

  test('revokes a key that stays rejected soon after', async () => {
    await done(`accounts limits ${owner} --rpm 100000`)
    const { key, prefix } = await asJson(`keys create ${owner} --name doomed`)
    expect(await status(String(key))).toBe(200)
    await asJson(`keys revoke ${owner} ${prefix}`)
    await untilStatus(String(key), 401)
    await Bun.sleep(700)
    expect(await status(String(key))).toBe(401)
    expect(await status(firstKey)).toBe(200)
    expect(await done(`keys revoke ${owner} ${prefix}`)).toContain('was already revoked')
  })

  test('keys rotate and keys revoke: take the name of one valid key, and reject one that several have', async () => {
    const first = await asJson(`keys create ${owner} --name named-key`)
    const second = await asJson(`keys rotate ${owner} named-key`)
    expect([second.name, second.replaces]).toEqual(['named-key', first.id])
    const third = await asJson(`keys create ${owner} --name named-key`)
    for (const what of ['rotate', 'revoke']) {
      const { code, stderr } = await command(`keys ${what} ${owner} named-key`)
      expect([code, stderr]).toEqual([1, expect.stringContaining(`${second.prefix}, ${third.prefix}`)])
    }
    await done(`keys revoke ${owner} ${third.prefix}`)
    expect((await asJson(`keys revoke ${owner} named-key`)).id).toBe(second.id)
    await untilStatus(String(second.key), 401)
  })

  test('keys rotate: replaces a key, whose copy stays valid for the overlap only', async () => {
    const { key, expires_at } = await asJson(`keys create ${owner} --name turning --expires 90d`)
    const inDays = (Date.parse(String(expires_at)) - Date.now()) / 86_400_000
    expect(inDays).toBeCloseTo(90, 2)
    const second = await asJson(`keys rotate ${owner} turning --overlap 1h`)
    expect(second).toMatchObject({ name: 'turning', expires_at, revoked_at: null })
    expect([await status(String(key)), await status(String(second.key))]).toEqual([200, 200])
    // Both are valid and have the name: it means the newest.
    const third = await done(`keys rotate ${owner} turning`)
    expect(third).toContain('was revoked')
    await untilStatus(String(second.key), 401)
    const { code, stderr } = await command(`keys rotate ${owner} ${second.prefix} --json`)
    expect(code).toBe(1)
    expect(JSON.parse(stderr).error).toMatchObject({ code: 'command_failed' })
  })

  test('keys create: restricts models and limits of the key', async () => {
    await done(`accounts limits ${owner} --rpm 100000`)
    const { key } = await asJson(
      `keys create ${owner} --models openai/gpt-5.5,anthropic/* --limits requests_per_minute=2,daily_cost_usd=5`,
    )
    const getError = async (model: string) => {
      const answer = await gateway.chat(String(key), 'hello', { model, max_output_tokens: 16 })
      return answer.ok ? null : Object(await answer.json()).error
    }
    expect(await getError('gemini-3.5-flash')).toMatchObject({
      code: 'forbidden',
      message: expect.stringContaining('openai/gpt-5.5, anthropic/*'),
    })
    expect([await getError('openai/gpt-5.5'), await getError('openai/gpt-5.5')]).toEqual([null, null])
    expect(await getError('openai/gpt-5.5')).toMatchObject({
      code: 'requests_per_minute_exceeded',
      limit: 'key.requests_per_minute',
    })
  })

  test('keys create: makes no key for a viewer', async () => {
    const { email, password } = await asJson('accounts create team@example.com')
    const person = await signIn(gateway, { email: String(email), password: String(password) })
    if (person === null) throw new Error('the sign-in failed')
    const viewer = await addMember(gateway, person, 'viewer')
    const { code, stderr } = await command(`keys create ${viewer.email}`)
    expect([code, stderr]).toEqual([
      1,
      expect.stringContaining(`${viewer.email} is a viewer and cannot have API keys.`),
    ])
    expect(Object(await asJson('keys list team@example.com')).data).toEqual([])
  })

  test('projects create: makes a project with limits, which projects list shows', async () => {
    await asJson('accounts create projects@example.com')
    const made = await asJson('projects create projects@example.com --name search --limits monthly_cost_usd=400')
    expect(made).toMatchObject({ name: 'search', limits: { monthly_cost_usd: 400, daily_tokens: null } })
    const { data } = Object(await asJson('projects list projects@example.com'))
    expect(data).toEqual([expect.objectContaining({ id: made.id, archived_at: null, active_keys: 0, members: [] })])
    expect(await done('projects list projects@example.com')).toMatch(/prj_\w{20} +\S+ +active +0 +0 +0 +search/)
    expect((await command('projects create projects@example.com')).code).toBe(2)
  })

  test('rules and constraints: are set and listed, of the account, a project and a key', async () => {
    await asJson('accounts create bound@example.com')
    const file = join(folder, 'rules.json')
    const rules = [{ name: 'canary', when: { model: 'openai/*' }, split: [{ model: 'gateway-ai', percent: 10 }] }]
    writeFileSync(file, JSON.stringify(rules))
    expect(await asJson(`rules set bound@example.com ${file}`)).toEqual({ data: rules })
    expect(await asJson('rules list bound@example.com')).toEqual({ data: rules })
    expect(await done('rules list bound@example.com')).toContain('canary  {"model":"openai/*"}  {"split"')
    writeFileSync(file, JSON.stringify([{ name: 'canary', rewrite: 'no-such-model' }]))
    expect(await command(`rules set bound@example.com ${file}`)).toMatchObject({ code: 2 })
    expect(await asJson('rules list bound@example.com')).toEqual({ data: rules })
    const key = await asJson('keys create bound@example.com --name batch')
    const project = await asJson('projects create bound@example.com --name search')
    await done(['constraints', 'set', 'bound@example.com', 'zdr, region=eu|us'])
    await done(['constraints', 'set', 'bound@example.com', 'providers=azure', '--key', 'batch'])
    await done(['constraints', 'set', 'bound@example.com', 'no_training', '--project', 'search'])
    expect(await command('constraints set bound@example.com cheap')).toMatchObject({ code: 2 })
    const { data } = Object(await asJson('constraints list bound@example.com'))
    expect(data).toEqual([
      expect.objectContaining({ of: 'account', constraints: { zdr: true, region: ['eu', 'us'] } }),
      { of: 'project', id: project.id, name: 'search', constraints: { no_training: true } },
      { of: 'key', id: key.id, name: 'batch', constraints: { providers: ['azure'] } },
    ])
    expect(await done('constraints list bound@example.com')).toContain('zdr, region=eu|us')
    await done('constraints set bound@example.com none')
    expect(Object(await asJson('constraints list bound@example.com')).data).toHaveLength(2)
    expect(await asJson('usage savings bound@example.com --by tag')).toMatchObject({
      data: [],
      total: { requests: 0, routing_saved_usd: 0 },
    })
  })

  test('keys create: makes a key in a project, which keys list shows', async () => {
    const { email, password } = await asJson('accounts create grouped@example.com')
    const { id } = await asJson('projects create grouped@example.com --name search')
    expect(await asJson('keys create grouped@example.com --project search')).toMatchObject({ project_id: id })
    expect(await asJson('keys create grouped@example.com')).toMatchObject({ project_id: null })
    expect(Object(await asJson('projects list grouped@example.com')).data).toMatchObject([{ active_keys: 1 }])
    const listed = await done('keys list grouped@example.com')
    expect(listed).toMatch(/valid +search +operator key\n.* valid +- +operator key\n$/)
    const person = await signIn(gateway, { email: String(email), password: String(password) })
    if (person === null) throw new Error('the sign-in failed')
    const viewer = await addMember(gateway, person, 'viewer')
    for (const [words, reason] of [
      ['grouped@example.com --project find', 'has no project with this name or ID.'],
      [`${viewer.email} --project ${id}`, 'cannot have API keys in this project.'],
    ])
      expect(await command(`keys create ${words}`)).toMatchObject({
        code: 1,
        stderr: expect.stringContaining(`${reason}`),
      })
    const path = `/api/v1/projects/${id}/members/${viewer.id}`
    expect((await sendRequest(gateway, 'PUT', path, { token: person.token, body: { role: 'member' } })).status).toBe(
      200,
    )
    expect(await asJson(`keys create ${viewer.email} --project ${id}`)).toMatchObject({ project_id: id })
  })

  test('accounts list: lists each account with its owner', async () => {
    const { id } = await asJson('accounts create listed@example.com --plan usage')
    expect(Object(await asJson('accounts list')).data).toContainEqual(
      expect.objectContaining({ id, email: 'listed@example.com', plan: 'usage', members: 1, requests_per_minute: 30 }),
    )
    expect(await done('accounts list')).toMatch(/acc_\w{20} +listed@example\.com +usage +1 +30 +20/)
  })

  test('doctor: finds the running gateway and its database well', async () => {
    const report = Object(await asJson('doctor'))
    expect(report.errors).toBe(0)
    const names = report.checks.map(({ name }: { name: string }) => name)
    expect(names).toEqual(expect.arrayContaining(['bun', 'data folder', 'disk', 'postgres', 'clock (postgres)']))
    expect(await done('doctor')).toContain(`in use by process ${gateway.pid}`)
  })

  test('changes and resets limits within 5 s', async () => {
    await done(`accounts limits ${owner} --rpm 1`)
    await untilStatus(firstKey, 429)
    await done(`accounts limits ${owner} --rpm 100000 --daily-cost-usd 2.5`)
    await untilStatus(firstKey, 200)
    expect(await asJson(`accounts show ${owner}`)).toMatchObject({
      limits: { requests_per_minute: 100_000, concurrent_requests: 50, daily_tokens: 20_000_000, daily_cost_usd: 2.5 },
      own_limits: {
        requests_per_minute: 100_000,
        concurrent_requests: 50,
        daily_tokens: 20_000_000,
        daily_cost_usd: 2.5,
      },
    })
    expect(await asJson(`accounts limits ${owner} --reset`)).toMatchObject({
      limits: { requests_per_minute: 30, daily_cost_usd: 1.67 },
      own_limits: { requests_per_minute: null, daily_cost_usd: null },
    })
  })

  test('accounts delete, users anonymize: end keys and users of a running gateway, once they are confirmed', async () => {
    const [first, second] = ['gone@example.com', 'leaves@example.com']
    const keys: string[] = []
    for (const email of [first, second]) {
      await asJson(`accounts create ${email} --plan usage`)
      keys.push(String((await asJson(`keys create ${email}`)).key))
    }
    for (const key of keys) expect(await status(key)).toBe(200)
    expect((await asJson(`accounts show ${first}`)).email).toBe(first)
    const { id } = await asJson(`accounts delete ${first} --yes`)
    expect(id).toStartWith('acc_')
    expect(await asJson(`users anonymize ${second} --yes`)).toMatchObject({ account_deleted: true, new_owner_id: null })
    for (const key of keys) await eventually(async () => (await status(key)) === 401, 15_000, 50)
    const listed = JSON.stringify(await asJson('accounts list'))
    for (const email of [first, second]) expect(listed).not.toContain(email)
    // The address is free.
    await asJson(`accounts create ${first}`)
    expect((await asJson(`accounts show ${first}`)).email).toBe(first)
  })

  test("accounts show: prints today's usage", async () => {
    const { password } = await asJson('accounts create used@example.com --plan usage')
    expect(await getBilling('used@example.com', String(password))).toMatchObject({
      plan: 'usage',
      version: 1,
      cycle: { cost_usd: 0 },
      payment_method: { kind: 'manual' },
    })
    const { key } = await asJson('keys create used@example.com')
    expect(await status(String(key))).toBe(200)
    // Usage reaches the ledger in batches, shortly after the response.
    const show = () => asJson('accounts show used@example.com')
    await eventually(async () => Object((await show()).today).tokens > 0, 15_000, 50)
    const { today, keys } = await show()
    expect(Object(today).tokens).toBeGreaterThan(0)
    expect(Object(today).cost_usd).toBeGreaterThan(0)
    expect(keys).toEqual({ valid: 1, total: 1 })
  })

  test('accounts shadow: shows the verdicts of an account, none yet', async () => {
    expect(await asJson(`accounts shadow ${owner}`)).toMatchObject({ days: 30, total: { compared: 0 }, models: [] })
    expect(await done(`accounts shadow ${owner}`)).toMatch(/^MODEL .*\nall +0 +– +\$0\.00$/m)
  })

  test('accounts resume: sets the shortfall to zero and prints what it was', async () => {
    const { password } = await asJson('accounts create short@example.com --plan usage')
    const { key } = await asJson('keys create short@example.com')
    expect(await status(String(key))).toBe(200)
    expect(String(password)).not.toBe('')
    expect(await asJson('accounts show short@example.com')).toMatchObject({ shortfall_usd: 0, paused_keys: [] })
    expect(await done('accounts show short@example.com')).toMatch(/shortfall today +\$0\.00/)
    expect(await asJson('accounts resume short@example.com')).toMatchObject({ shortfall_usd: 0, before_usd: 0 })
    expect(await done('accounts resume short@example.com')).toContain('shortfall $0.00')
  })

  test('accounts plan: changes the plan with its billing', async () => {
    expect(await done('accounts plan used@example.com evaluation')).toContain('plan evaluation, 5 requests per minute')
    expect(await asJson('accounts show used@example.com')).toMatchObject({ plan: 'evaluation' })
    const { password } = await asJson('accounts reset-password used@example.com')
    const billing = () => getBilling('used@example.com', String(password))
    expect(await billing()).toMatchObject({ plan: 'evaluation', version: 2, cycle: null })
    expect(await asJson('accounts plan used@example.com usage')).toMatchObject({ plan: 'usage' })
    const begun = await billing()
    expect(begun).toMatchObject({ plan: 'usage', version: 3, cycle: { cost_usd: 0 } })
    await done('accounts plan used@example.com usage')
    expect(await billing()).toEqual(begun)
  })

  test('accounts reset-password: replaces the password and stores only its hash', async () => {
    const before = await asJson('accounts reset-password used@example.com')
    const after = await asJson('accounts reset-password used@example.com')
    expect(after.password).not.toBe(before.password)
    expect(after.user_id).toBe(before.user_id)
  })

  test('accounts reset-two-factor: lets a user in without a code, and reports whether it was enabled', async () => {
    const email = 'codes@example.com'
    const { password } = await asJson(`accounts create ${email}`)
    const signedIn = () => signIn(gateway, { email, password: String(password) })
    const { token } = (await signedIn()) ?? {}
    const path = '/api/v1/auth/two-factor'
    const setup = await sendRequest<{ secret: string }>(gateway, 'POST', path, { token, body: { password } })
    const code = totpCode(setup.body.secret, Math.floor(Date.now() / 30_000))
    expect((await sendRequest(gateway, 'POST', `${path}/confirm`, { token, body: { code } })).status).toBe(200)
    expect(await signedIn()).toBeNull()
    expect(await asJson(`accounts reset-two-factor ${email}`)).toMatchObject({ email, was_enabled: true })
    expect(await signedIn()).not.toBeNull()
    expect(await done(`accounts reset-two-factor ${email}`)).toContain('two-factor sign-in was not set up')
  })

  test('prints keys and passwords once', async () => {
    const { password } = await asJson('accounts create secret@example.com')
    const { key } = await asJson('keys create secret@example.com')
    const later = (await done('accounts show secret@example.com')) + (await done('keys list secret@example.com --json'))
    expect(later).not.toContain(String(password))
    expect(later).not.toContain(String(key))
    expect(gateway.output()).not.toContain(String(key))
  })

  test('prevents names from controlling the terminal', async () => {
    const { code } = await command(['keys', 'create', 'secret@example.com', '--name', 'x\u001b[2Jy\nz'])
    expect(code).toBe(0)
    const listed = await done('keys list secret@example.com')
    expect(listed.split('\n').filter(line => /\p{Cc}/u.test(line))).toEqual([])
    expect(listed).toContain('x[2Jyz')
  })
})

describe('CLI without a running gateway', () => {
  const environment = { GATEWAY_DATA_DIR: dataFolder() }
  const unfinished = join(environment.GATEWAY_DATA_DIR, 'postgres.unfinished')

  // What a first start leaves that was killed while it made the database.
  beforeAll(() => {
    mkdirSync(unfinished, { recursive: true })
    writeFileSync(join(unfinished, 'PG_VERSION'), '18')
  })

  test('opens and frees the embedded database, whose data the gateway then serves', async () => {
    await done('accounts create early@example.com --plan usage', environment, spawned)
    const { key } = await asJson('keys create early@example.com', environment)
    expect(readdirSync(environment.GATEWAY_DATA_DIR)).not.toContain('gateway.pid')
    const later = await startProcess(environment.GATEWAY_DATA_DIR)
    expect((await later.chat(String(key), 'hello')).status).toBe(200)
    expect(later.output()).toContain('keys create <email>')
    later.kill('SIGKILL')
    await later.exited
  })

  test('creates the embedded database again when the first start was killed', () => {
    expect(readdirSync(environment.GATEWAY_DATA_DIR)).toContain('postgres')
    expect(existsSync(unfinished)).toBe(false)
  })

  test('waits for other commands', async () => {
    const words = ['a', 'b'].map(name => `accounts create ${name}@example.com`)
    const ends = await Promise.all(words.map(word => spawned(word, environment)))
    expect(ends.map(({ code, stderr }) => ({ code, stderr }))).toEqual([
      { code: 0, stderr: '' },
      { code: 0, stderr: '' },
    ])
    const made = await onEmbedded(
      environment.GATEWAY_DATA_DIR,
      ({ sql }) => sql`select email from users where email similar to '[ab]@example.com' order by email`,
    )
    expect(made.map(({ email }) => email)).toEqual(['a@example.com', 'b@example.com'])
    expect(await done('migrate', environment)).toBe('The database is up to date.\n')
  })

  test('doctor: reports each problem with an action, creates nothing and exits with 1', async () => {
    const own = dataFolder()
    const { code, stdout, stderr } = await command('doctor', { GATEWAY_DATA_DIR: own, PORT: 'x' })
    expect(code).toBe(1)
    expect(stdout).toMatch(/^error +configuration +PORT: .*\n +→ Correct it: the gateway does not start\.$/m)
    expect(stdout).toMatch(/^ok +database +embedded; not opened/m)
    expect(stderr).toBe(`1 of ${/(\d+) checks: 1 error,/.exec(stdout)?.[1]} checks failed; see above.\n`)
    expect(existsSync(own)).toBe(false)
  })

  test('creates no database for a command that only reads', async () => {
    const own = dataFolder()
    const { code, stderr } = await command(`accounts show ${owner}`, { GATEWAY_DATA_DIR: own })
    expect(code).toBe(1)
    expect(stderr).toContain(`No data in ${own}.`)
    expect(existsSync(own)).toBe(false)
  })
})

describe('CLI on a real Postgres', () => {
  testNeeding('postgres', 'needs only DATABASE_URL and creates the tables of an empty database', async () => {
    const environment = { DATABASE_URL: needed(postgres).url, GATEWAY_DATA_DIR: dataFolder() }
    await done('accounts create ann@example.com --plan usage', environment, spawned)
    const { prefix } = await asJson('keys create ann@example.com --name first', environment)
    expect(await done('migrate', environment)).toBe('The database is up to date.\n')
    expect(await done('keys list ann@example.com', environment)).toMatch(
      /key_\w{20} +gw_live_\w{12}… .* valid +- +first\n/,
    )
    expect(await done(`keys revoke ann@example.com ${prefix}`, environment)).toContain('was revoked')
    expect(await asJson('accounts show ann@example.com', environment)).toMatchObject({ keys: { valid: 0, total: 1 } })
    expect(existsSync(environment.GATEWAY_DATA_DIR)).toBe(false)
  })

  test('reports an unreachable database in one line', async () => {
    const { code, stderr } = await spawned(`accounts show ${owner}`, { DATABASE_URL: 'postgres://127.0.0.1:1/x' })
    expect(code).toBe(1)
    expect(stderr).toMatch(/^Database unavailable\..*ECONNREFUSED\)\n$/)
  })
})

describe('CLI arguments', () => {
  const wrong: readonly (readonly [words: string, advice: string])[] = [
    ['', 'Missing command.'],
    ['accounts', 'accounts reset-password'],
    ['acounts show x@example.com', 'Unknown command "acounts show".'],
    ['accounts show', 'Missing argument <email>.'],
    ['accounts show a@example.com b@example.com', 'Unexpected argument "b@example.com".'],
    ['accounts create nobody', '"nobody" is not an email address.'],
    ['accounts create a@example.com --plan gold', '--plan must be evaluation or usage.'],
    ['accounts plan a@example.com', 'Missing argument evaluation|usage.'],
    ['accounts limits a@example.com', 'Set at least one limit, or --reset.'],
    ['accounts limits a@example.com --reset --rpm 1', '--reset cannot be combined'],
    ['accounts limits a@example.com --rpm -1', '--rpm'],
    ['accounts limits a@example.com --rpm 1.5', '--rpm must be a whole number'],
    ['accounts limits a@example.com --daily-cost-usd 1e3', '--daily-cost-usd must be an amount'],
    ['keys create a@example.com --nmae x', "Unknown option '--nmae'."],
    ['keys revoke a@example.com', 'Missing argument <key id, prefix or name>.'],
    ['models', 'models check'],
  ]

  test('change nothing when wrong, print help on stderr, and exit with 2', async () => {
    const environment = { GATEWAY_DATA_DIR: dataFolder() }
    for (const [index, [words, advice]] of wrong.entries()) {
      const { code, stdout, stderr } = await (index === 0 ? spawned : command)(words, environment)
      expect({ words, code, stdout }).toEqual({ words, code: 2, stdout: '' })
      expect(stderr).toContain(advice)
      expect(stderr).toContain(shellCommand(''))
    }
    expect(existsSync(environment.GATEWAY_DATA_DIR)).toBe(false)
  })

  test('report an impossible command in one line and exit with 1', async () => {
    const impossible = [
      ['accounts show nobody@example.com', 'No account'],
      [`accounts create ${owner}`, 'already has an account'],
      [`keys revoke ${owner} gw_live_000000000000`, 'no such key'],
    ] as const
    for (const [words, reason] of impossible) {
      const { code, stdout, stderr } = await command(words)
      expect({ words, code, stdout, lines: stderr.split('\n').length }).toEqual({
        words,
        code: 1,
        stdout: '',
        lines: 2,
      })
      expect(stderr).toContain(reason)
    }
  })

  test('include help for every command', async () => {
    const list = await done('--help', {}, spawned)
    const names = [...list.matchAll(/^ {2}([\w-]+(?: [a-z-]+)?) {2,}/gm)].map(([, name]) => name ?? '')
    expect(names).toEqual([
      'serve',
      'migrate',
      'accounts create',
      'accounts list',
      'accounts show',
      'accounts plan',
      'accounts limits',
      'accounts resume',
      'accounts shadow',
      'accounts operator',
      'accounts reset-password',
      'accounts reset-two-factor',
      'accounts delete',
      'users anonymize',
      'keys create',
      'keys list',
      'keys revoke',
      'keys rotate',
      'provider-keys list',
      'provider-keys add',
      'provider-keys rotate',
      'provider-keys remove',
      'projects create',
      'projects list',
      'rules list',
      'rules set',
      'constraints list',
      'constraints set',
      'usage replay',
      'usage reconcile',
      'usage check',
      'usage compare',
      'usage savings',
      'models list',
      'models check',
      'models update',
      'models switches',
      'models enable',
      'models disable',
      'models hosts',
      'reload',
      'config schema',
      'analyze',
      'import litellm',
      'doctor',
      'completion',
    ])
    for (const name of names) expect(await done(`${name} --help`)).toStartWith(shellCommand(name))
  })

  test('models check: passes the catalog, calls no provider, and lists configured ones', async () => {
    const simulated = await asJson('models check', {}, spawned)
    expect(simulated).toMatchObject({ problems: [], called: false })
    const text = await done('models check', {
      ANTHROPIC_API_KEY: 'canary-key',
      ANTHROPIC_BASE_URL: 'http://127.0.0.1:1',
    })
    expect(text).toMatch(/anthropic +\d+ +configured +http:\/\/127\.0\.0\.1:1\n/)
    expect(text).toMatch(/openai +\d+ +not offered +set OPENAI_API_KEY\n/)
    expect(text).toContain('No provider was called')
    expect(text).not.toContain('canary')
  })

  test('serve: starts the gateway', async () => {
    const { code, stderr } = await spawned('serve', { PORT: '0' })
    expect(code).toBe(1)
    expect(stderr).toContain(`is in use by process ${gateway.pid}`)
  })
})
