import type { Config } from '../config.ts'
import { createMail } from '../mail/queue.ts'
import { createPost, type Post } from '../mail/mailer.ts'
import type { Log } from '../observability/log.ts'
import type { Clock } from './clock.ts'

/** Letters, where a mail server is configured; its library is loaded only there. `undo` takes what lets go of it. */
export async function openPost(
  { mail }: Config,
  { clock, log }: { clock: Clock; log: Log },
  undo: (() => unknown)[],
): Promise<Post | null> {
  if (mail === null) return null
  const { smtpTransport } = await import('../mail/smtp.ts')
  const { smtpUrl: url, from, requireTls, publicUrl } = mail
  const queue = createMail({ transport: smtpTransport({ url, from, requireTls }), clock, log })
  undo.push(() => queue.close())
  return createPost(queue, publicUrl)
}
