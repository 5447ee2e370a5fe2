/** A worker's meter in a separate process: calls the owner on a socket and reports the results. */
import { systemClock } from '../../src/database/clock.ts'
import type { AdmissionRequest } from '../../src/limits/meter.ts'
import { createOwnerClient, type OwnerClient } from '../../src/limits/owner/client.ts'
import { connectLocally } from '../../src/limits/owner/local-socket.ts'
import type { OwnerMessage, WorkerMessage } from '../../src/limits/owner/messages.ts'

export type OwnedOrder = { readonly kind: 'race'; readonly request: AdmissionRequest; readonly count: number }
export type OwnedOutcome = { readonly admitted: number; readonly refused: number; readonly failed: number }

const joined = Promise.withResolvers<OwnerClient>()
await connectLocally<OwnerMessage, WorkerMessage>(process.argv[2] ?? '', owner => {
  const client = createOwnerClient({
    worker: 1,
    clock: systemClock,
    deadlineMs: 20_000,
    send: owner.send,
    journal: () => {
      throw new Error('nothing is settled here')
    },
    onChanged() {},
  })
  joined.resolve(client)
  return { receive: client.receive, closed: client.lost }
})
const { meter } = await joined.promise

async function race({ request, count }: OwnedOrder): Promise<OwnedOutcome> {
  const outcomes = await Promise.all(
    Array.from({ length: count }, () =>
      meter.admit({ ...request, requestId: Bun.randomUUIDv7() }).then(
        ({ admitted }) => (admitted ? 'admitted' : 'refused'),
        () => 'failed',
      ),
    ),
  )
  const counted = (outcome: string) => outcomes.filter(text => text === outcome).length
  return { admitted: counted('admitted'), refused: counted('refused'), failed: counted('failed') }
}

process.on('message', async (order: OwnedOrder) => {
  process.send?.(await race(order))
})
