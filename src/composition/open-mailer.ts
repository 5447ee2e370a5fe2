import type { Config } from '../config.ts'
import type { Clock } from '../core/ports/clock.ts'
import type { Log } from '../core/ports/log.ts'
import { createMailer, type Mailer } from '../mail/mailer.ts'
import { createMail } from '../mail/queue.ts'

/**
 * Opens the mailer if a mail server is configured; its library is loaded only then. `undo` receives the function that
 * closes it.
 */
export async function openMailer(
  { mail, serviceDeadlines }: Config,
  { clock, log }: { clock: Clock; log: Log },
  undo: (() => unknown)[],
): Promise<Mailer | null> {
  if (mail === null) return null
  const { smtpTransport } = await import('../mail/smtp.ts')
  const { smtpUrl: url, from, requireTls, publicUrl } = mail
  const transport = smtpTransport({ url, from, requireTls, openingMs: serviceDeadlines.mailOpeningMs })
  const queue = createMail({ transport, clock, log })
  undo.push(() => queue.close())
  return createMailer(queue, publicUrl)
}
