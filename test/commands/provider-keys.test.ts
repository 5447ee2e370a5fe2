/** Stored provider keys on the command line: read from standard input, and never printed. */
import { expect, setDefaultTimeout, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { openEmbedded } from '../../src/database/embedded.ts'
import { freshFolder } from '../harness/processes.ts'

setDefaultTimeout(240_000)

const key = 'sk-command-0123456789abcdef'
const cli = join(import.meta.dir, '../../src/cli.ts')

/** Runs commands on a data folder of their own, whose database is open: each command would open it otherwise. */
async function openFolder() {
  const folder = await freshFolder()
  await openEmbedded(folder)
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
  return { folder, run }
}

test('provider-keys: adds, lists, rotates and removes a key of the account that the command line created first', async () => {
  const { folder, run } = await openFolder()
  const config = join(folder, 'config.json')
  writeFileSync(
    config,
    JSON.stringify({ providers: [{ id: 'openai', keys: [{ name: 'filed', api_key_env: 'FILED' }] }] }),
  )
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

test('provider-keys: manages own keys of an account and of a project apart from those of the operator', async () => {
  const { run } = await openFolder()
  await run('accounts create boss@example.com')
  await run('accounts create other@example.com')
  const made = await run('projects create other@example.com --name search --json')
  const project = String(JSON.parse(made.text).id)
  // Served at its public address, with a key of the operator.
  const served = { OPENAI_API_KEY: 'sk-of-the-operator' }
  const owners = ['', ' --account other@example.com', ` --account other@example.com --project ${project}`]
  const [operator = '', account = '', inProject = ''] = owners
  const add = (owner: string, env: object = served) => run(`provider-keys add openai --json${owner}`, key, env)
  expect(await add(`${operator} --no-fallback`)).toMatchObject({
    ...{ code: 2, text: expect.stringContaining('--no-fallback is for own keys') },
  })
  const elsewhere = { ...served, OPENAI_BASE_URL: 'http://127.0.0.1:9/v1' }
  expect(await add(account, elsewhere)).toMatchObject({
    code: 2,
    text: expect.stringContaining('address of the operator'),
  })
  expect(await add(' --account nobody@example.com')).toMatchObject({ code: 1 })
  expect(await add(' --account other@example.com --project prj_none')).toMatchObject({
    ...{ code: 1, text: expect.stringContaining('no project prj_none') },
  })
  // The project is of another account.
  expect((await add(` --project ${project}`)).code).toBe(1)
  const added = [await add(operator), await add(account), await add(`${inProject} --no-fallback`)]
  expect(added.map(({ text }) => JSON.parse(text))).toMatchObject([
    { project_id: null, fallback: true },
    { project_id: null, fallback: true },
    { project_id: project, fallback: false },
  ])
  expect((await add(account)).text).toContain('openai already has a key')
  const list = async (owner: string) => JSON.parse((await run(`provider-keys list --json${owner}`)).text).data
  const ids = added.map(({ text }) => String(JSON.parse(text).id))
  for (const [at, owner] of owners.entries()) expect(await list(owner)).toMatchObject([{ id: ids[at], readable: true }])
  const rotated = await run(`provider-keys rotate openai --json${inProject}`, `${key}-fresh`)
  expect(JSON.parse(rotated.text)).toMatchObject({ id: ids[2], last_characters: 'resh', fallback: false })
  expect((await run(`provider-keys remove openai${account}`)).code).toBe(0)
  expect([await list(operator), await list(account), await list(inProject)]).toMatchObject([
    [{ last_characters: 'cdef' }],
    [],
    [{ last_characters: 'resh' }],
  ])
})
