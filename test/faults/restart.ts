/**
 * 10,000 requests on kept connections while the workers are replaced repeatedly: `bun test/faults/restart.ts [requests]
 * [workers]`. Exits with 1 if any was truncated, rejected or not answered with 200.
 */
import { openDatabase } from '../../src/database/database.ts'
import { connectEmbedded } from '../../src/database/embedded.ts'
import { newAccountOn } from '../harness/account.ts'
import { patientStore } from '../harness/patience.ts'
import { freshFolder, startProcess, stopProcesses } from '../harness/processes.ts'
import { startRedis } from '../harness/redis.ts'
import { anyPause, startCallers } from './kept-callers.ts'

const [requests = '10000', workers = '2'] = process.argv.slice(2)
const redis = await startRedis()
if (redis === null) throw new Error('needs Redis')
const folder = await freshFolder()
const gateway = await startProcess(folder, {
  WORKERS: workers,
  DRAIN_NOTICE_MS: '1000',
  REDIS_URL: redis.url,
})
const eventCount = (event: string) => gateway.output().split(`"event":"${event}"`).length - 1
while (eventCount('workers_ready') === 0) await Bun.sleep(50)

const embedded = await connectEmbedded(folder)
const database = openDatabase(embedded.address, { connections: 1, ...patientStore })
const { key } = await newAccountOn(database, {
  requestsPerMinute: 1_000_000,
  concurrentRequests: 1_000,
  dailyTokens: 1_000_000_000,
  dailyCostMicrocents: 1_000_000_000_000,
})
await database.close()

const startedAt = performance.now()
const callers = startCallers({ url: gateway.url, key, callers: 24, pauseMs: anyPause(20) })
let rounds = 0
while (callers.answered() < Number(requests)) {
  process.kill(gateway.pid, 'SIGUSR2')
  rounds++
  while (eventCount('workers_replaced') < rounds) await Bun.sleep(20)
}
const { answered, failed } = await callers.stop()
const seconds = (performance.now() - startedAt) / 1_000
const lost = Object.values(failed).reduce((sum, times) => sum + times, 0)
process.stdout.write(
  `${answered} of ${answered + lost} answered in ${seconds.toFixed(0)} s while ${workers} workers were replaced ${rounds} times each; failed: ${JSON.stringify(failed)}\n`,
)
if (lost > 0)
  process.stdout.write(
    `${gateway
      .output()
      .split('\n')
      .filter(line => /"level":"(warn|error)"/.test(line))
      .slice(-20)
      .join('\n')}\n`,
  )
gateway.kill('SIGTERM')
const code = await gateway.exited
await stopProcesses()
await redis.stop()
process.exit(lost === 0 && code === 0 ? 0 : 1)
