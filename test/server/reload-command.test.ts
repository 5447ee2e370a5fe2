/** `gateway reload` against processes: workers, an invalid file, and a folder without a gateway. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { eventually } from '../harness/eventually.ts'
import { freshFolder, type GatewayProcess, run, startProcess, stopProcesses } from '../harness/processes.ts'
import { startRedis } from '../harness/redis.ts'

setDefaultTimeout(240_000)

const folder = await freshFolder()
const path = join(folder, 'config.json')
let gateway: GatewayProcess
const redis = await startRedis()
beforeAll(async () => {
  writeFileSync(path, '{}')
  gateway = await startProcess(folder, {
    GATEWAY_CONFIG: path,
    ...(redis === null ? {} : { WORKERS: '2', REDIS_URL: redis.url }),
  })
}, 240_000)
afterAll(async () => {
  await stopProcesses()
  await redis?.stop()
})

const reload = (...words: string[]) => run('cli.ts', ['reload', ...words], { GATEWAY_DATA_DIR: folder })

test('gateway reload: reports the result of the workers, and every problem of an invalid file', async () => {
  writeFileSync(path, JSON.stringify({ plans: { evaluation: { requests_per_minute: 7 } } }))
  const done = await reload('--json')
  expect([done.code, done.stderr]).toEqual([0, ''])
  expect(JSON.parse(done.stdout)).toMatchObject({ reloaded: true, problems: [], restart: [] })
  writeFileSync(path, JSON.stringify({ plans: { evaluation: { requests_per_minute: -7 } }, colors: 1 }))
  const failed = await reload()
  expect([failed.code, failed.stdout]).toEqual([1, ''])
  expect(failed.stderr).toContain('plans.evaluation.requests_per_minute')
  expect(failed.stderr).toContain('colors')
  // The command may end before this process has read the log of the other.
  await eventually(() => gateway.output().includes('"event":"config_reload_failed"'), 10_000)
})

test('models update: reaches every worker of the running gateway, and keeps a history', async () => {
  writeFileSync(path, '{}')
  const from = join(folder, 'update.json')
  const models = [
    { provider: 'openai', id: 'gpt-5.5', pricing: { input_per_mtok: 7, output_per_mtok: 70 } },
    { provider: 'anthropic', id: 'claude-haiku-4-5', deprecated: true, successor: 'claude-haiku-5-5' },
  ]
  writeFileSync(from, JSON.stringify({ format: 'gateway-catalog-1', date: '2099-01-31', models }))
  const updateModels = (...words: string[]) =>
    run('cli.ts', ['models', 'update', ...words, '--json'], { GATEWAY_DATA_DIR: folder, GATEWAY_CONFIG: path })
  const done = await updateModels('--from', from)
  expect([done.code, done.stderr]).toEqual([0, ''])
  const { installed, processes } = JSON.parse(done.stdout)
  expect({ installed, isReloaded: processes > 0 }).toEqual({ installed: true, isReloaded: true })
  const applied = () => gateway.output().match(/"event":"model_deprecated"[^\n]*claude-haiku-4-5/g)?.length ?? 0
  await eventually(() => applied() >= (redis === null ? 1 : 2), 60_000)
  const { data } = JSON.parse((await updateModels('--history')).stdout)
  expect(data).toMatchObject([{ date: '2099-01-31' }])
  expect(data[0].changed).toContainEqual({ model: 'openai/gpt-5.5', field: 'pricing.output', from: '30', to: '70' })
})

test('gateway reload: fails without a running gateway', async () => {
  const { code, stderr } = await run('cli.ts', ['reload'], { GATEWAY_DATA_DIR: join(folder, 'nothing') })
  expect(code).toBe(1)
  expect(stderr).toContain('No gateway runs on')
})
