import { openDatabase } from '../../src/database/database.ts'
import { newAccountOn } from '../harness/account.ts'
import { answered } from '../harness/gateway.ts'
import { patientStore } from '../harness/patience.ts'

/** Creates a key of a new account without limits, except those given. */
export async function freshKey(databaseUrl: string, { concurrent = 1_000 } = {}): Promise<string> {
  const database = openDatabase(databaseUrl, { connections: 1, ...patientStore })
  try {
    // A Postgres that has just started may miss the deadline of a query on a busy machine.
    const { key } = await answered(() =>
      newAccountOn(database, {
        requestsPerMinute: 100_000_000,
        concurrentRequests: concurrent,
        dailyTokens: 1_000_000_000_000,
        dailyCostMicrocents: 1_000_000_000_000_000,
      }),
    )
    return key
  } finally {
    await database.close()
  }
}
