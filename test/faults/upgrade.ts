/**
 * A rolling upgrade under load: `bun test/faults/upgrade.ts COMMIT [instances]`. Instances of that commit's release are
 * replaced one by one with this tree's, on one Postgres and one Redis, behind a front that spreads connections. Exits
 * with 1 if a request failed, a limit was exceeded by both releases together, or usage and counters differ.
 */

import { randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { mintApiKey } from '../../src/core/accounts/api-keys.ts'
import { openDatabase } from '../../src/database/database.ts'
import { checkOut } from '../bench/against.ts'
import { patientStore } from '../harness/patience.ts'
import { startPostgres } from '../harness/postgres.ts'
import { dataFolder, type GatewayProcess, run, startProcess, stopProcesses } from '../harness/processes.ts'
import { startRedis } from '../harness/redis.ts'
import { anyPause, startCallers } from './kept-callers.ts'
import { startProxy } from './tcp-proxy.ts'

const [commit, instances = '3'] = process.argv.slice(2)
if (commit === undefined) throw new Error('name the commit of the former release')
const say = (line: string) => process.stdout.write(`${line}\n`)
const root = join(import.meta.dir, '..', '..')
const folder = mkdtempSync(join(tmpdir(), 'gateway-ai-upgrade-'))
const former = join(folder, 'former')
const removeFormer = checkOut(root, commit, former)
const [postgres, redis] = [await startPostgres(), await startRedis()]
if (postgres === null || redis === null) throw new Error('Postgres and Redis are needed')

const mostPerMinute = 40
const drainNoticeMs = 1_000
const settings = {
  DATABASE_URL: postgres.url,
  REDIS_URL: redis.url,
  JWT_SECRET: 'rolling upgrade '.repeat(4),
  DRAIN_NOTICE_MS: String(drainNoticeMs),
}
const getPort = ({ url }: GatewayProcess) => Number(new URL(url).port)

/** Starts one instance and waits until it reports that it is ready. */
async function startReady(release: string): Promise<GatewayProcess> {
  const instance = await startProcess(dataFolder(), settings, release)
  while (!(await fetch(`${instance.url}/readyz`)).ok) await Bun.sleep(50)
  return instance
}

const running: GatewayProcess[] = []
for (let number = 0; number < Number(instances); number++) running.push(await startReady(former))
const front = startProxy(null)
const frontUrl = `http://127.0.0.1:${front.port}`
front.leadTo(...running.map(getPort))

const database = openDatabase(postgres.url, { connections: 1, ...patientStore })
/** Creates an account with ample limits except for requests per minute, in columns that both releases have. */
async function newAccount(requestsPerMinute: number): Promise<{ readonly id: string; readonly key: string }> {
  const minted = mintApiKey(randomBytes)
  const id = `acc_${minted.id}`
  await database.run(
    ({ sql }) =>
      sql.begin(async step => {
        await step`
        insert into accounts (id, name, plan, requests_per_minute, concurrent_requests, daily_tokens, daily_cost_microcents, created_at)
        values (${id}, 'Upgrade', 'usage', ${requestsPerMinute}, 1000, 1000000000, 1000000000000, now())`
        await step`
        insert into users (id, account_id, email, password_hash, role, created_at)
        values (${`usr_${minted.id}`}, ${id}, ${`${minted.id.toLowerCase()}@example.test`}, 'none', 'owner', now())`
        await step`
        insert into api_keys (id, account_id, user_id, name, public_id, digest, created_at)
        values (${`key_${minted.id}`}, ${id}, ${`usr_${minted.id}`}, 'upgrade', ${minted.id}, ${minted.digest}, now())`
      }),
    5_000,
  )
  return { id, key: minted.key }
}
const free = await newAccount(1_000_000)
const limited = await newAccount(mostPerMinute)

const callers = startCallers({ url: frontUrl, key: free.key, callers: 12, pauseMs: anyPause(40) })
const bounded = startCallers({ url: frontUrl, key: limited.key, callers: 2, pauseMs: anyPause(200) })
await Bun.sleep(3_000)
const startedAt = performance.now()
for (const old of running.splice(0)) {
  const others = running.map(getPort)
  const next = await startReady(root)
  running.push(next)
  front.leadTo(getPort(old), ...others, getPort(next))
  await Bun.sleep(3_000)
  // A balancer learns of the drain while the instance still accepts connections.
  old.kill('SIGTERM')
  await Bun.sleep(drainNoticeMs / 4)
  front.leadTo(...running.map(getPort))
  const code = await old.exited
  if (code !== 0) say(`an instance of ${commit} ended with ${code}: ${old.output().slice(-2_000)}`)
}
await Bun.sleep(3_000)
const seconds = (performance.now() - startedAt) / 1_000
const { answered, failed } = await callers.stop()
const others = await bounded.stop()
const lost = Object.values(failed).reduce((sum, times) => sum + times, 0)

for (const instance of running) {
  instance.kill('SIGTERM')
  await instance.exited
}
const admitted = await database.run(
  async ({ sql }) =>
    await sql<{ at: number }[]>`
      select extract(epoch from at)::float8 as at from usage_records
      where account_id = ${limited.id} and status = 'completed' order by at`,
  5_000,
)
const times = admitted.map(({ at }) => at)
const most = Math.max(0, ...times.map((end, index) => times.slice(0, index + 1).filter(at => at > end - 60).length))
const [counted] = await database.run(
  async ({ sql }) =>
    await sql<{ records: number }[]>`
      select count(*)::int as records from usage_records where account_id = ${free.id} and status = 'completed'`,
  5_000,
)
const reconciled = await run('cli.ts', ['usage', 'reconcile'], { ...settings, GATEWAY_DATA_DIR: dataFolder() })
say(`${answered} of ${answered + lost} answered in ${seconds.toFixed(0)} s, failed: ${JSON.stringify(failed)}`)
say(`usage records of them: ${counted?.records}`)
say(
  `limit of ${mostPerMinute} a minute: at most ${most} in 60 s; answers: ${others.answered}, ${JSON.stringify(others.failed)}`,
)
say(`usage reconcile: ${reconciled.stdout.trim()}${reconciled.stderr.trim()}`)
await database.close()
front.stop()
await stopProcesses()
await postgres.stop()
await redis.stop()
removeFormer()
rmSync(folder, { recursive: true, force: true })
const isWell =
  lost === 0 &&
  counted?.records === answered &&
  most <= mostPerMinute &&
  reconciled.code === 0 &&
  others.failed['503'] === undefined
process.exit(isWell ? 0 : 1)
