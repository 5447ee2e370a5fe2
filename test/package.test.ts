/** The package of the gateway as the release publishes it, installed in a folder of its own. */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import packageJson from '../package.json'
import { shellCommand } from '../src/core/validation/errors.ts'
import { dataFolder, startProcess, stopProcesses } from './harness/processes.ts'

const root = join(import.meta.dir, '..')
const folder = mkdtempSync(join(tmpdir(), 'gateway-ai-package-'))
const installed = join(folder, 'node_modules', packageJson.name)
const run = (...words: readonly [string, ...string[]]) => {
  const { success, stdout, stderr } = Bun.spawnSync([...words], { cwd: root })
  if (!success) throw new Error(`${words[0]}: ${stderr}`)
  return stdout.toString()
}

beforeAll(() => {
  run(process.execPath, 'pm', 'pack', '--destination', folder, '--quiet', '--ignore-scripts')
  const [packed = ''] = readdirSync(folder).filter(name => name.endsWith('.tgz'))
  run('tar', '-xzf', join(folder, packed), '-C', folder)
  mkdirSync(join(folder, 'node_modules'))
  renameSync(join(folder, 'package'), installed)
  // Instead of an installation from the registry.
  symlinkSync(join(root, 'node_modules'), join(installed, 'node_modules'))
}, 60_000)
afterAll(async () => {
  await stopProcesses()
  rmSync(folder, { recursive: true })
})

describe('package', () => {
  test('contains the sources that run and the database, and no test, training data or client library', () => {
    const isLeftOut = /^src\/(client|training)\/|^src\/dashboard\/tsconfig\.json$/
    const sources = run('git', 'ls-files', '--cached', '--others', '--exclude-standard', 'src', 'drizzle')
    const wanted = sources
      .trim()
      .split('\n')
      .filter(path => !isLeftOut.test(path) && !/^drizzle\/.*\.ts$/.test(path) && existsSync(join(root, path)))
    const found = readdirSync(installed, { recursive: true, withFileTypes: true })
      .filter(item => item.isFile() && !item.parentPath.startsWith(join(installed, 'node_modules')))
      .map(({ parentPath, name }) => join(parentPath, name).slice(installed.length + 1))
    expect(found.toSorted()).toEqual([...wanted, 'LICENSE', 'README.md', 'package.json'].sort())
  })

  test('starts in an empty folder, answers a chat, serves the dashboard, and names its own commands', async () => {
    const gateway = await startProcess(dataFolder(), {}, installed)
    const key = /API key +(\S+)/.exec(gateway.output())?.[1] ?? ''
    expect(gateway.output()).toContain(
      shellCommand('accounts limits owner@gateway.local', process.execPath, join(installed, 'node_modules', 'x')),
    )
    expect((await gateway.chat(key, 'Say hello.')).status).toBe(200)
    const page = await (await fetch(gateway.url, { headers: { accept: 'text/html' } })).text()
    const assets = [...page.matchAll(/"(\/assets\/[^"]+)"/g)].map(([, path]) => path)
    expect(assets.length).toBeGreaterThan(0)
    for (const path of assets) expect((await fetch(`${gateway.url}${path}`)).status).toBe(200)
    gateway.kill('SIGTERM')
    expect(await gateway.exited).toBe(0)
  }, 240_000)

  test('publishes with provenance under another name than the client library', async () => {
    const { private: isPrivate, publishConfig, bin } = packageJson
    expect([isPrivate, publishConfig, bin]).toEqual([false, { access: 'public', provenance: true }, 'src/main.ts'])
    expect(await Bun.file(join(root, 'src/client/package.json')).json()).not.toMatchObject({ name: packageJson.name })
    expect(await Bun.file(join(root, bin)).text()).toStartWith('#!/usr/bin/env bun\n')
  })
})
