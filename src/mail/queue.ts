/**
 * Mail goes out behind the requests that cause it: into a bounded queue, tried again for a while, and never waited for. What
 * a letter says, and to whom, is in no log.
 */
import type { Email } from './templates.ts'

/** Hands one letter to a mail server. Rejects with `LetterRefused` where trying again is of no use. */
export type MailTransport = { send(letter: Email): Promise<void>; close(): void }

/** The mail server will not have this letter. */
export class EmailRejectedError extends Error {
  constructor(reason: string) {
    super(reason)
    this.name = 'LetterRefused'
  }
}

/** `refused`: the mail server will never take it. `failed`: another attempt may succeed. */
export type Delivery = 'sent' | 'refused' | 'failed'

export type MailQueue = {
  /** Takes the letter, and returns at once. One too many is dropped. */
  send(letter: Email): void
  /** Sends one letter now, past the queue and once. Never throws. */
  deliver(letter: Email): Promise<Delivery>
  /** Sends what is left, for some seconds at most; what failed and waits for another try is dropped. */
  close(): Promise<void>
}

export type MailOptions = {
  readonly transport: MailTransport
  readonly clock: {
    sleep(milliseconds: number): Promise<unknown>
    after(milliseconds: number, action: () => void): () => void
  }
  readonly log: { warn(event: string, fields?: Readonly<Record<string, string | number>>): void }
  /** How long to wait after each failed try; as many tries as there are entries, and one. */
  readonly waitsMs?: readonly number[]
}

type Held = { readonly letter: Email; readonly tries: number }

const maximumWaiting = 1_000
const atOnce = 4
const usualWaitsMs = [1_000, 5_000, 30_000, 120_000, 600_000]
const closingDeadlineMs = 5_000

/** The queue of one process: what is in it when the process is killed is lost. */
export function createMail({ transport, clock, log, waitsMs = usualWaitsMs }: MailOptions): MailQueue {
  const waiting: Held[] = []
  const running = new Set<Promise<void>>()
  /** Letters taken and not yet done with, those that wait for another try among them. */
  let held = 0
  let isClosing = false

  const deliver = async ({ letter, tries }: Held) => {
    try {
      await transport.send(letter)
      held--
    } catch (cause) {
      const waitMs = cause instanceof EmailRejectedError || isClosing ? undefined : waitsMs[tries]
      if (waitMs !== undefined) return void clock.after(waitMs, () => enter({ letter, tries: tries + 1 }))
      held--
      log.warn('mail_not_sent', { kind: letter.kind, tries: tries + 1, detail: reasonOf(cause) })
    }
  }
  const enter = (letter: Held) => {
    waiting.push(letter)
    next()
  }
  const next = () => {
    while (running.size < atOnce) {
      const letter = waiting.shift()
      if (letter === undefined) return
      const tried = deliver(letter).finally(() => {
        running.delete(tried)
        next()
      })
      running.add(tried)
    }
  }

  return {
    send(letter) {
      if (held >= maximumWaiting || isClosing) return log.warn('mail_dropped', { kind: letter.kind, waiting: held })
      held++
      enter({ letter, tries: 0 })
    },
    async deliver(letter) {
      try {
        await transport.send(letter)
        return 'sent'
      } catch (cause) {
        log.warn('mail_not_sent', { kind: letter.kind, tries: 1, detail: reasonOf(cause) })
        return cause instanceof EmailRejectedError ? 'refused' : 'failed'
      }
    },
    async close() {
      isClosing = true
      const done = async () => {
        while (running.size > 0) await Promise.all(running)
      }
      await Promise.race([done(), clock.sleep(closingDeadlineMs)])
      // Under way still, or waiting for another try.
      if (held > 0) log.warn('mail_dropped', { waiting: held })
      transport.close()
    },
  }
}

/** A code where there is one: what a mail server says may hold the address. */
function reasonOf(cause: unknown): string {
  if (cause instanceof EmailRejectedError) return cause.message
  return cause instanceof Error && 'code' in cause && typeof cause.code === 'string' ? cause.code : 'not delivered'
}
