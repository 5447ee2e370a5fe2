/** Stored provider keys on the command line: read from standard input, and never printed. */
import { expect, setDefaultTimeout, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { freshFolder } from '../harness/processes.ts'

setDefaultTimeout(240_000)

const key = 'sk-command-0123456789abcdef'
const cli = join(import.meta.dir, '../../src/cli.ts')

test('provider-keys: adds, lists, rotates and removes a key of the account that the command line created first', async () => {
  const folder = await freshFolder()
  const config = join(folder, 'config.json')
  writeFileSync(
    config,
    JSON.stringify({ providers: [{ id: 'openai', keys: [{ name: 'filed', api_key_env: 'FILED' }] }] }),
  )
  const run = async (words: string, input = '', env = {}) => {
    const child = Bun.spawn([process.execPath, cli, ...words.split(' ')], {
      env: { PATH: process.env.PATH, GATEWAY_DATA_DIR: folder, ...env },
      stdin: Buffer.from(input),
      stdout: 'pipe',
      stderr: 'pipe',
    })
    const [code, out, err] = await Promise.all([child.exited, child.stdout.text(), child.stderr.text()])
    expect(`${out}${err}`).not.toContain('0123456789')
    return { code, text: out + err }
  }
  expect((await run('provider-keys list')).text).toContain('Start it once')
  expect((await run('accounts create boss@example.com')).code).toBe(0)
  expect((await run('accounts create other@example.com')).code).toBe(0)
  expect((await run('accounts show boss@example.com --json')).text).toContain('"operator": true')
  expect((await run('accounts show other@example.com --json')).text).toContain('"operator": false')
  expect((await run('provider-keys add openai', 'short')).code).toBe(2)
  expect((await run('provider-keys add nobody', key)).code).toBe(2)
  expect(await run('provider-keys add ollama', key)).toMatchObject({
    code: 2,
    text: expect.stringContaining('OLLAMA_BASE_URL'),
  })
  const filed = await run('provider-keys add openai --name filed', key, { GATEWAY_CONFIG: config, FILED: 'sk-filed' })
  expect(filed).toMatchObject({ code: 1, text: expect.stringContaining('already has a key "filed"') })
  expect((await run('provider-keys add openai', `${key}\n`)).code).toBe(0)
  expect((await run('provider-keys add openai', key)).text).toContain('already has a key "main"')
  expect((await run('provider-keys list')).text).toContain('…cdef')
  // Another secret than the one that sealed the key.
  writeFileSync(join(folder, 'session-secret'), 'x'.repeat(64))
  expect((await run('provider-keys list')).text).toContain('unreadable')
  expect((await run('provider-keys add openai --name second', key)).code).toBe(1)
  expect((await run('provider-keys rotate openai', key)).code).toBe(0)
  expect((await run('provider-keys list')).text).not.toContain('unreadable')
  expect((await run('provider-keys remove openai')).code).toBe(0)
  expect((await run('provider-keys remove openai')).text).toContain('has no stored key "main"')
})
