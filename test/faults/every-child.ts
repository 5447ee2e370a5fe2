/** Started by `test/run.ts` as a test file: has a child of every kind that a run starts, and never ends. */
import { afterAll, test } from 'bun:test'
import { openBrowser } from '../dashboard/browser.ts'
import { chromiumPath } from '../dashboard/chromium.ts'
import { startPostgres } from '../harness/postgres.ts'
import { freshFolder, startProcess, stopProcesses } from '../harness/processes.ts'
import { startRedis } from '../harness/redis.ts'

afterAll(stopProcesses)

test('run: has every child', async () => {
  const chromium = chromiumPath()
  const redis = await startRedis()
  await Promise.all([
    startPostgres(),
    startProcess(await freshFolder(), redis === null ? {} : { WORKERS: '2', REDIS_URL: redis.url }),
    chromium === null ? null : openBrowser(chromium),
  ])
  Bun.spawn(['node_modules/.bin/tsc', '--noEmit', '--watch', '--project', 'src/client'], { stdout: 'ignore' })
  // Stopped, it gets no signal but SIGKILL.
  redis?.freeze()
  await Bun.write(`${process.env.TMPDIR}/every-child`, '')
  await Promise.withResolvers<never>().promise
}, 600_000)
