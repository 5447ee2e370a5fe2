/** The gateway under measurement: the process that `start` runs, with an account whose limits are out of the way. */
import { createApp } from '../../src/app.ts'
import { readConfig } from '../../src/config.ts'
import { createDeps } from '../../src/deps.ts'
import { changeAccount, findAccountByEmail } from '../../src/stores/accounts.ts'

const deps = await createDeps(readConfig())
const account = deps.firstAccount
const found = account === null ? null : await findAccountByEmail(deps.database, account.email)
if (account === null || found === null) throw new Error('the benchmark needs a fresh data folder')
await changeAccount(deps.database, found.account.id, {
  // Above a thousand a minute the exact log would be what is measured; a plan has thirty.
  requestsPerMinute: 100_000_000,
  concurrentRequests: 10_000,
  dailyTokens: 1_000_000_000_000,
  dailyCostMicrocents: 1_000_000_000_000_000,
})
const app = createApp(deps).listen({ port: 0, hostname: '127.0.0.1' })
process.stdout.write(`${JSON.stringify({ port: app.server?.port, key: account.key })}\n`)
