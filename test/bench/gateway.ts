/** The measured gateway: the process of `start`, with a practically unlimited account. */
import { randomBytes } from 'node:crypto'
import { createApp } from '../../src/app.ts'
import { createDeps } from '../../src/compose/deps.ts'
import { readConfig } from '../../src/config/config.ts'
import { createKey } from '../../src/console/keys/stores/keys.ts'
import { mintApiKey } from '../../src/core/accounts/api-keys.ts'
import { changeAccount, createAccount } from '../../src/database/repositories/accounts.ts'
import { warmUp } from '../../src/server/serve.ts'

const deps = await createDeps(readConfig())
const createdAt = new Date()
/** Several gateways on one database have an account each. */
const name = process.env.BENCH_ACCOUNT ?? 'bench'
const [accountId, userId] = [`acc_${name}`, `usr_${name}`]
const minted = mintApiKey(randomBytes)
await createAccount(
  deps.database,
  { id: accountId, name: 'Bench', plan: 'usage', createdAt },
  { id: userId, accountId, email: `${name}@gateway.local`, passwordHash: 'none', role: 'owner', createdAt },
)
await createKey(deps.database, {
  id: `key_${name}`,
  accountId,
  userId,
  name: 'bench',
  publicId: minted.id,
  digest: minted.digest,
  createdAt,
})
await changeAccount(deps.database, accountId, {
  requestsPerMinute: 100_000_000,
  concurrentRequests: 10_000,
  dailyTokens: 1_000_000_000_000,
  dailyCostMicrocents: 1_000_000_000_000_000,
})
warmUp(deps)
const app = createApp(deps).listen({ port: 0, hostname: '127.0.0.1' })
export const port = app.server?.port
export const key = minted.key
process.stdout.write(`${JSON.stringify({ port, key })}\n`)
// A process that is killed writes no profile (`BENCH_PROFILE`).
process.on('SIGTERM', () => process.exit(0))
