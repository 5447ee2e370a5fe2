/** Opens the resources of the process itself: clock, network, log, random numbers and IDs. */
import { randomBytes } from 'node:crypto'
import type { Config } from '../config/config.ts'
import { randomBase62 } from '../core/accounts/api-keys.ts'
import { intervalTimer, type RepeatTimer } from '../core/jobs/repeating.ts'
import type { Clock, Network } from '../core/ports.ts'
import { createSharedClock } from '../database/clock.ts'
import { createLog } from '../observability/log.ts'
import { systemNetwork } from '../web/network.ts'
import type { PageReaderOptions } from '../web/page-fetcher.ts'

/**
 * What tests and commands may replace: clock, network, log destination, and the timer of background jobs. Configuration
 * never sets `pages`: the source of page fetches is fixed.
 */
export type ProcessOptions = {
  readonly clock?: Clock
  readonly network?: Network
  readonly writeLog?: (line: string) => void
  readonly timer?: RepeatTimer
  readonly pages?: Partial<Pick<PageReaderOptions, 'resolve' | 'dial' | 'isListed'>>
}

export type Process = ReturnType<typeof openProcess>

export function openProcess({ logLevel }: Pick<Config, 'logLevel'>, options: ProcessOptions) {
  const shared = createSharedClock()
  const clock = options.clock ?? shared.clock
  return {
    shared,
    clock,
    network: options.network ?? systemNetwork,
    log: createLog({
      level: logLevel,
      pretty: process.stdout.isTTY,
      now: clock.now,
      write: options.writeLog ?? (line => process.stdout.write(line)),
    }),
    timer: options.timer ?? intervalTimer,
    pages: options.pages ?? {},
    random: Math.random,
    randomBytes,
    /** `acc` → `acc_` and twenty random characters. */
    newId: (prefix: string) => `${prefix}_${randomBase62(20, randomBytes)}`,
    newRequestId: () => `req_${Bun.randomUUIDv7().replaceAll('-', '')}`,
  }
}
