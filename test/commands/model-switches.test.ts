/** Switches of models on the command line. */
import { expect, setDefaultTimeout, test } from 'bun:test'
import { join } from 'node:path'
import { openEmbedded } from '../../src/database/embedded.ts'
import { freshFolder } from '../harness/processes.ts'

setDefaultTimeout(240_000)

const cli = join(import.meta.dir, '../../src/cli.ts')

test('models: disables, enables and lists models of the configuration, and refuses wrong names and hosts', async () => {
  const folder = await freshFolder()
  // Each command would open the database otherwise.
  await openEmbedded(folder)
  const run = async (words: string) => {
    const child = Bun.spawn([process.execPath, cli, ...words.split(' ')], {
      env: { PATH: process.env.PATH, GATEWAY_DATA_DIR: folder, OLLAMA_BASE_URL: 'http://127.0.0.1:9/v1' },
      stdout: 'pipe',
      stderr: 'pipe',
    })
    const [code, out, err] = await Promise.all([child.exited, child.stdout.text(), child.stderr.text()])
    return { code, text: out + err }
  }
  expect((await run('accounts create boss@example.com')).code).toBe(0)
  expect((await run('models switches')).text).toContain('as configured')
  expect((await run('models disable openai/gpt-5.5')).code).toBe(0)
  expect((await run('models disable ollama/any-name')).code).toBe(0)
  expect((await run('models switches --json')).text).toContain('"enabled": false')
  expect((await run('models disable gpt-5.5')).code).toBe(2)
  expect((await run('models hosts openai/gpt-5.5 azure')).code).toBe(2)
  expect((await run('models hosts openai/gpt-5.5 a:b')).code).toBe(2)
  expect((await run('models hosts openai/gpt-5.5 openai:2')).code).toBe(0)
  expect((await run('models switches')).text).toMatch(/openai\/gpt-5\.5 +off +openai:2/)
  expect((await run('models hosts openai/gpt-5.5 default')).code).toBe(0)
  expect((await run('models enable openai/gpt-5.5')).code).toBe(0)
  expect((await run('models enable ollama/any-name')).code).toBe(0)
  expect((await run('models switches')).text).toContain('as configured')
})
