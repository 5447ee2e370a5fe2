/**
 * Sends emails in the background: a bounded queue with retries that no request waits for. Contents and recipients are
 * never logged.
 */

import { createTransport } from 'nodemailer'
import type { BillingNotice } from '../core/billing/grace.ts'
import type { Clock, Log } from '../core/ports.ts'

export type Email = {
  /** For the log, which contains nothing else of the email. */
  readonly kind:
    | 'invitation'
    | 'email_verification'
    | 'password_reset'
    | 'sign_in_locked'
    | 'alert'
    | BillingNotice['kind']
  readonly to: string
  readonly subject: string
  readonly text: string
  /**
   * The same for each attempt to send this email, so that mailboxes show duplicates once; absent = a new one each time.
   */
  readonly messageId?: string
}

/** Passes one email to a mail server. Rejects with `EmailRejectedError` if a retry cannot succeed. */
type MailTransport = { send(letter: Email): Promise<void>; close(): void }

/** The mail server permanently rejects this email. */
export class EmailRejectedError extends Error {
  constructor(reason: string) {
    super(reason)
    this.name = 'LetterRefused'
  }
}

/** `refused`: permanently rejected. `failed`: a retry may succeed. */
export type Delivery = 'sent' | 'refused' | 'failed'

export type MailQueue = {
  /** Queues an email and returns at once. Drops it if the queue is full. */
  send(letter: Email): void
  /** Sends one email now, once, outside of the queue. Never throws. */
  deliver(letter: Email): Promise<Delivery>
  /** Sends what is queued, for some seconds at most; drops emails that wait for a retry. */
  close(): Promise<void>
}

type MailOptions = {
  readonly transport: MailTransport
  readonly clock: Pick<Clock, 'sleep' | 'after'>
  readonly log: Pick<Log, 'warn'>
  /** Milliseconds to wait after each failed attempt; there is one attempt more than entries. */
  readonly waitsMs?: readonly number[]
}

type Held = { readonly letter: Email; readonly tries: number }

const maximumWaiting = 1_000
const atOnce = 4
const usualWaitsMs = [1_000, 5_000, 30_000, 120_000, 600_000]
const closingDeadlineMs = 5_000

/** Creates the queue of one process. Queued emails are lost if the process is killed. */
export function createMail({ transport, clock, log, waitsMs = usualWaitsMs }: MailOptions): MailQueue {
  const waiting: Held[] = []
  const running = new Set<Promise<void>>()
  /** Emails accepted and not finished, including those that wait for a retry. */
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
      log.warn('email_failed', { kind: letter.kind, tries: tries + 1, detail: getReason(cause) })
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
      if (held >= maximumWaiting || isClosing) return log.warn('email_dropped', { kind: letter.kind, waiting: held })
      held++
      enter({ letter, tries: 0 })
    },
    async deliver(letter) {
      try {
        await transport.send(letter)
        return 'sent'
      } catch (cause) {
        log.warn('email_failed', { kind: letter.kind, tries: 1, detail: getReason(cause) })
        return cause instanceof EmailRejectedError ? 'refused' : 'failed'
      }
    },
    async close() {
      isClosing = true
      const done = async () => {
        while (running.size > 0) await Promise.all(running)
      }
      await Promise.race([done(), clock.sleep(closingDeadlineMs)])
      // Being sent, or waiting for a retry.
      if (held > 0) log.warn('email_dropped', { waiting: held })
      transport.close()
    },
  }
}

/** Returns an error code if there is one, because a mail server's text may contain the address. */
function getReason(cause: unknown): string {
  if (cause instanceof EmailRejectedError) return cause.message
  return cause instanceof Error && 'code' in cause && typeof cause.code === 'string' ? cause.code : 'not delivered'
}

/** Sends emails over SMTP. Loaded only if a mail server is configured. */

type SmtpSettings = {
  /** `smtp://` (STARTTLS if the server offers it) or `smtps://`, with credentials if required. */
  readonly url: string
  readonly from: string
  /** True if nothing may be sent without STARTTLS: credentials would leave the private network. */
  readonly requireTls: boolean
  /** Time for the connection, and again for the greeting, in milliseconds. */
  readonly openingMs: number
}

const silenceMs = 15_000

/** Opens one connection per email, since emails are rare. */
export function smtpTransport({ url, from, requireTls, openingMs }: SmtpSettings): MailTransport {
  const { protocol, hostname, port, username, password } = new URL(url)
  const isSecure = protocol === 'smtps:'
  const mailer = createTransport({
    host: hostname.replace(/^\[|\]$/g, ''),
    port: port === '' ? (isSecure ? 465 : 587) : Number(port),
    secure: isSecure,
    requireTLS: requireTls,
    connectionTimeout: openingMs,
    greetingTimeout: openingMs,
    socketTimeout: silenceMs,
    disableFileAccess: true,
    disableUrlAccess: true,
    ...(username === '' ? {} : { auth: { user: decodeURIComponent(username), pass: decodeURIComponent(password) } }),
  })
  return {
    async send({ to, subject, text, messageId }) {
      try {
        // As an object, because an address may contain a list separator.
        await mailer.sendMail({
          from,
          to: { name: '', address: to },
          subject,
          text,
          ...(messageId === undefined ? {} : { messageId }),
        })
      } catch (cause) {
        const code = findRejection(cause)
        if (code !== null) throw new EmailRejectedError(`refused with ${code}`)
        throw cause
      }
    },
    close: () => mailer.close(),
  }
}

/**
 * Returns the server's code if it permanently rejects this recipient or this text; null for any other failure. A 5xx to
 * another command (wrong credentials, no service, the sender) would meet every email until the operator corrects it.
 */
function findRejection(cause: unknown): number | null {
  if (!(cause instanceof Error && 'responseCode' in cause && 'command' in cause)) return null
  const { responseCode, command } = cause
  const isOfEmail = command === 'RCPT TO' || command === 'DATA'
  return isOfEmail && typeof responseCode === 'number' && responseCode >= 500 ? responseCode : null
}
