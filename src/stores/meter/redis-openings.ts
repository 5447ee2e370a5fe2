/**
 * How accounts begin their day in Redis: the script that admits asks for what the ledger holds of it, and of the requests that
 * it has settled and does not know to be in the ledger.
 */
import { GatewayError } from '../../core/errors.ts'
import { RedisAway } from '../redis.ts'
import type { Seed, Waiting } from './spent.ts'

type Ask = (accountId: string, values: readonly string[]) => Promise<readonly unknown[]>
/**
 * Behind what the script is asked anyway: the day, its tokens and cost, the ids that were looked for in the ledger (after a `~`
 * where only a checkpoint was known), and once more, after a `=`, those of which it has the final record.
 */
type Opening = readonly string[]

export type RedisOpenings = {
  /**
   * What the script says of these values once the day has begun, after it said `first`. Rejects as the asking does, or with the
   * ledger's own failure where that is away and no gateway knows what it would say.
   */
  begin(accountId: string, values: readonly string[], first: readonly unknown[]): Promise<readonly unknown[]>
}

const mostTries = 5

/** `ask` runs the script that admits. */
export function createRedisOpenings(seed: Seed, ask: Ask): RedisOpenings {
  const seeding = new Map<string, Promise<Opening>>()

  /** However many come at once, the ledger is asked once: whoever is first begins the day with it, the others find it begun. */
  const openingOf = (accountId: string, day: number, waiting: readonly Waiting[]): Promise<Opening> => {
    const running = seeding.get(accountId)
    if (running !== undefined) return running
    const asked = seed(accountId, day, waiting)
      .then(({ tokens, microcents, final = [] }) => [
        String(day),
        String(tokens),
        String(microcents),
        ...waiting.map(({ requestId, truth }) => (truth === 'final' ? requestId : `~${requestId}`)),
        ...final.map(requestId => `=${requestId}`),
      ])
      .finally(() => seeding.delete(accountId))
    seeding.set(accountId, asked)
    return asked
  }

  return {
    async begin(accountId, values, first) {
      let reply = first
      // Again where something was settled meanwhile that the ledger was not asked for.
      for (let tries = 0; reply[0] === 0; tries++) {
        if (tries === mostTries) throw new RedisAway('an account that does not come to rest')
        const day = Number(reply[1])
        try {
          const opening = await openingOf(accountId, day, readWaiting(reply.slice(2)))
          reply = await ask(accountId, [...values, ...opening])
        } catch (cause) {
          if (!(cause instanceof GatewayError)) throw cause
          // The ledger is away: what gateways have registered is what it would say, and what none of them knows must wait for it.
          reply = await ask(accountId, [...values, String(day), '', ''])
          if (reply[0] === 0) throw cause
        }
      }
      return reply
    },
  }
}

/** `id, tokens:cost:day:final` pairs as a script replies them; a fourth number of 0 = a checkpoint. */
function readWaiting(fields: readonly unknown[]): Waiting[] {
  const waiting: Waiting[] = []
  for (let index = 0; index + 1 < fields.length; index += 2) {
    const [tokens = 0, microcents = 0, day = 0, isFinal = 1] = String(fields[index + 1])
      .split(':')
      .map(Number)
    waiting.push({
      requestId: String(fields[index]),
      tokens,
      microcents,
      day,
      truth: isFinal === 0 ? 'checkpoint' : 'final',
    })
  }
  return waiting
}
