/** A catalog update: verified, shown, installed, and read by a running gateway. */
import { afterAll, expect, setDefaultTimeout, spyOn, test } from 'bun:test'
import { generateKeyPairSync, sign } from 'node:crypto'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { execute } from '../../src/commands/execute.ts'
import { readConfig } from '../../src/config/config.ts'
import { startGateway } from '../harness/gateway.ts'

setDefaultTimeout(240_000)

const folder = mkdtempSync(join(tmpdir(), 'catalog-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const installed = join(folder, 'installed.json')
const update = {
  format: 'gateway-catalog-1',
  date: '2099-01-31',
  models: [
    { provider: 'openai', id: 'gpt-5.5', pricing: { input_per_mtok: 7, output_per_mtok: 70 } },
    { provider: 'openai', id: 'gpt-9', like: 'gpt-5.5', pricing: { input_per_mtok: 3, output_per_mtok: 9 } },
    { provider: 'anthropic', id: 'claude-haiku-4-5', deprecated: true, successor: 'claude-haiku-5-5' },
  ],
}

/** Writes a file of this test; returns its path. */
function write(name: string, text: string): string {
  const path = join(folder, name)
  writeFileSync(path, text)
  return path
}

const good = write('update.json', JSON.stringify(update))

/** Runs `models update` in this process with only these variables. */
async function updateFrom(words: readonly string[], environment: Record<string, string> = {}) {
  const own = process.env
  process.env = { PATH: own.PATH, GATEWAY_DATA_DIR: folder, MODEL_CATALOG: installed, ...environment }
  const streams = [process.stdout, process.stderr].map(stream => spyOn(stream, 'write').mockReturnValue(true))
  try {
    const code = await execute(['models', 'update', ...words], '0.0.0')
    const [stdout = '', stderr = ''] = streams.map(stream => stream.mock.calls.map(([text]) => String(text)).join(''))
    return { code, stdout, stderr }
  } finally {
    process.env = own
    for (const stream of streams) stream.mockRestore()
  }
}

const refused: readonly (readonly [what: string, words: readonly string[], reason: string])[] = [
  ['no source', [], '--from is required'],
  ['an address without proof', ['--from', 'https://example.com/catalog.json'], 'must be verified'],
  ['a missing file', ['--from', join(folder, 'none.json')], 'Cannot read'],
  ['another digest', ['--from', good, '--sha256', '00'.repeat(32)], 'not the given one'],
  ['text', ['--from', write('text.json', 'hello')], 'not valid JSON'],
  ['another form', ['--from', write('form.json', '{"format":"x","date":"2099-01-01","models":[]}')], 'format: must be'],
  [
    'a model without a price',
    [
      '--from',
      write(
        'price.json',
        JSON.stringify({ ...update, models: [{ provider: 'openai', id: 'gpt-9', like: 'gpt-5.5' }] }),
      ),
    ],
    'no `pricing`',
  ],
  [
    'an unknown successor',
    [
      '--from',
      write(
        'next.json',
        JSON.stringify({ ...update, models: [{ provider: 'openai', id: 'gpt-5.5', successor: 'x' }] }),
      ),
    ],
    'its successor x is not in the catalog',
  ],
  [
    'an older catalog',
    ['--from', write('old.json', JSON.stringify({ ...update, date: '2020-01-01' }))],
    'nothing to install',
  ],
  ['a large file', ['--from', write('large.json', ' '.repeat(5_000_000))], 'is larger than'],
]

test.each(refused)('models update: refuses %s and installs nothing', async (_, words, reason) => {
  const { code, stderr } = await updateFrom(words)
  expect(stderr).toContain(reason)
  expect(code).toBeGreaterThan(0)
  expect(existsSync(installed)).toBe(false)
})

test('models update: prints the differences and installs nothing in a dry run', async () => {
  const { code, stdout } = await updateFrom(['--from', good, '--dry-run'])
  expect(code).toBe(0)
  expect(stdout).toMatch(/openai\/gpt-5\.5 +pricing\.input +\S+ +7\n/)
  expect(stdout).toMatch(/openai\/gpt-9 +model +- +added\n/)
  expect(stdout).toMatch(/anthropic\/claude-haiku-4-5 +deprecated +false +true\n/)
  expect(existsSync(installed)).toBe(false)
})

test('models update: prints that a catalog is installed only when it is', async () => {
  const blocked = join(write('file', ''), 'catalog.json')
  const unwritten = await updateFrom(['--from', good], { MODEL_CATALOG: blocked })
  expect([unwritten.code, unwritten.stderr]).toEqual([1, expect.stringContaining(`Cannot write ${blocked}: `)])
  expect(unwritten.stdout).toContain('pricing.input')
  expect(unwritten.stdout).not.toMatch(/installed|running/i)
  // The history is a folder.
  const catalog = join(folder, 'without-history.json')
  mkdirSync(`${catalog}.history`)
  const installedOnly = await updateFrom(['--from', good], { MODEL_CATALOG: catalog })
  expect([installedOnly.code, existsSync(catalog)]).toEqual([1, true])
  expect(installedOnly.stdout).toEndWith(`Installed the catalog of 2099-01-31 in ${catalog}.\n`)
  expect(installedOnly.stderr).toContain(`Cannot write ${catalog}.history: it is a folder.`)
})

test('models update: prints the history without lines that a crash has torn', async () => {
  const catalog = join(folder, 'torn-history.json')
  const line = JSON.stringify({ installed_at: '2026-05-01T00:00:00.000Z', date: '2026-05-01', changed: [] })
  writeFileSync(`${catalog}.history`, `${line}\n${line.slice(0, 30)}${line}\n${line}\n`)
  const { code, stdout, stderr } = await updateFrom(['--history', '--json'], { MODEL_CATALOG: catalog })
  expect([code, JSON.parse(stdout).data.length]).toEqual([0, 2])
  expect(stderr).toBe(`${catalog}.history: unreadable lines, left out: 1.\n`)
})

test('models update: prints figures of the operator, which it does not replace', async () => {
  const config = write(
    'gateway.json',
    JSON.stringify({
      models: [{ provider: 'openai', id: 'gpt-5.5', pricing: { input_per_mtok: 1, output_per_mtok: 70 } }],
    }),
  )
  const { stdout } = await updateFrom(['--from', good, '--dry-run', '--json'], { GATEWAY_CONFIG: config })
  const kept = (field: string, from: string, to: string) => ({
    model: 'openai/gpt-5.5',
    field: `pricing.${field}`,
    from,
    to,
  })
  // Prices that the operator does not name keep their ratio to the named ones; variants of the price end.
  expect(JSON.parse(stdout).kept).toEqual([
    kept('input', '7', '1'),
    kept('cachedInput', '0.7', '0.1'),
    kept('longContext.input', '14', '2'),
    kept('longContext.cachedInput', '1.4', '0.2'),
  ])
})

test('models update: fetches from an address with a signature, and refuses a changed one', async () => {
  const { publicKey, privateKey } = generateKeyPairSync('ed25519')
  const key = write('key.pem', publicKey.export({ type: 'spki', format: 'pem' }))
  const bytes = readFileSync(good)
  let signature = sign(null, Buffer.from('something else'), privateKey).toString('base64')
  const server = Bun.serve({
    port: 0,
    fetch: ({ url }) => new Response(new URL(url).pathname.endsWith('.sig') ? signature : bytes),
  })
  try {
    const words = ['--from', `http://127.0.0.1:${server.port}/catalog.json?channel=stable`, '--public-key', key]
    expect((await updateFrom(words)).stderr).toContain('signature of the update does not match')
    expect(existsSync(installed)).toBe(false)
    signature = sign(null, bytes, privateKey).toString('base64')
    expect((await updateFrom([...words, '--dry-run'])).code).toBe(0)
  } finally {
    await server.stop(true)
  }
})

test('models update: changes the models of a running gateway on reload, below the figures of the operator', async () => {
  const environment = { MODEL_CATALOG: installed }
  const gateway = await startGateway(environment)
  try {
    const read = async (): Promise<{ id: string; deprecated: boolean; pricing: { input_per_mtok: number } }[]> => {
      const response = await fetch(`${gateway.url}/api/v1/models`, {
        headers: { authorization: `Bearer ${gateway.key}` },
      })
      return ((await response.json()) as { data: never }).data
    }
    const find = async (id: string) => (await read()).find(model => model.id === id || model.id === `openai/${id}`)
    expect(await find('gpt-9')).toBeUndefined()
    const digest = new Bun.CryptoHasher('sha256').update(readFileSync(good)).digest('hex')
    expect((await updateFrom(['--from', good, '--sha256', digest])).code).toBe(0)
    gateway.deps.reloadConfig(() => readConfig({ GATEWAY_DATA_DIR: folder, ...environment }))
    expect((await find('gpt-9'))?.pricing.input_per_mtok).toBe(3)
    expect((await find('gpt-5.5'))?.pricing.input_per_mtok).toBe(7)
    expect(gateway.logLines.join('\n')).toContain('"model_deprecated","model":"anthropic/claude-haiku-4-5"')
    const answer = await gateway.post('/v1/chat/completions', {
      model: 'openai/gpt-9',
      messages: [{ role: 'user', content: 'Hello' }],
    })
    expect(answer.headers.get('x-gateway-model')).toBe('openai/gpt-9')
  } finally {
    await gateway.stop()
  }
})

test('readConfig: ignores an update that is older than the release, and refuses a broken one', () => {
  const at = (name: string) => () => readConfig({ GATEWAY_DATA_DIR: folder, MODEL_CATALOG: join(folder, name) })
  const old = at('old.json')()
  expect(old.warnings.join()).toContain('the file is ignored')
  expect(old.publishedModels.some(({ id }) => id === 'gpt-9')).toBe(false)
  expect(at('text.json')).toThrow('MODEL_CATALOG')
})
