import type { Config } from '../config.ts'
import type { Clock, Log } from '../core/ports.ts'
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
  const { smtpTransport } = await import('../mail/queue.ts')
  const { smtpUrl: url, from, requireTls, publicUrl } = mail
  const transport = smtpTransport({ url, from, requireTls, openingMs: serviceDeadlines.mailOpeningMs })
  const queue = createMail({ transport, clock, log })
  undo.push(() => queue.close())
  return createMailer(queue, publicUrl)
}
