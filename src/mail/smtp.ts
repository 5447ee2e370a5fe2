/** Sends emails over SMTP. Loaded only if a mail server is configured. */
import { createTransport } from 'nodemailer'
import { EmailRejectedError, type MailTransport } from './queue.ts'

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
        const code = rejectionOf(cause)
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
function rejectionOf(cause: unknown): number | null {
  if (!(cause instanceof Error && 'responseCode' in cause && 'command' in cause)) return null
  const { responseCode, command } = cause
  const isOfEmail = command === 'RCPT TO' || command === 'DATA'
  return isOfEmail && typeof responseCode === 'number' && responseCode >= 500 ? responseCode : null
}
