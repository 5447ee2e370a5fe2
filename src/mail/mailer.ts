import { type AlertEmail, metricRules } from '../core/alerts/alerts.ts'
import type { BillingNotice, Grace } from '../core/billing/grace.ts'
import type { Delivery, Email, MailQueue } from './queue.ts'

/** Sends each kind of email in the background. Tokens are sent only by email. */
export type Mailer = {
  invitation(to: string, by: string, token: string): void
  emailVerification(to: string, token: string): void
  passwordReset(to: string, token: string): void
  signInLocked(to: string): void
  /** Sends one email about an alert and waits for the mail server's response. `id` as for `billing`; absent = a test. */
  alert(to: string, alert: AlertEmail, id?: string): Promise<Delivery>
  /** Sends one email and waits for the mail server's response, which decides the state of the stored notice. */
  billing(email: BillingEmail): Promise<Delivery>
}

/** Creates a mailer over `mail`. Links lead to `publicUrl`, never to a host that a request names. It has no trailing slash. */
export function createMailer(mail: Pick<MailQueue, 'send' | 'deliver'>, publicUrl: string): Mailer {
  return {
    invitation: (to, by, token) =>
      mail.send(
        toEmail('invitation', to, 'You are invited to gateway-ai', [
          `${by} invited you to their account on gateway-ai.`,
          'Choose a password here within 7 days:',
          `${publicUrl}/#/invitation/${token}`,
          'If you do not know the sender, ignore this email.',
        ]),
      ),
    emailVerification: (to, token) =>
      mail.send(
        toEmail('email_verification', to, 'Confirm your email address for gateway-ai', [
          'Someone registered this address on gateway-ai. If it was you, confirm it within 24 hours with the password that you chose:',
          `${publicUrl}/#/verify/${token}`,
          'If it was not you, ignore this email. The account cannot be used, and you can still register the address yourself.',
        ]),
      ),
    passwordReset: (to, token) =>
      mail.send(
        toEmail('password_reset', to, 'Reset your gateway-ai password', [
          'Someone requested a password reset for this address.',
          'Choose a new password here within 30 minutes; all your sessions then end:',
          `${publicUrl}/#/reset/${token}`,
          'If another person may have used your account, revoke your API keys on the same page.',
          'If it was not you, ignore this email: your password does not change.',
        ]),
      ),
    signInLocked: to =>
      mail.send(
        toEmail('sign_in_locked', to, 'Your gateway-ai sign-in is locked', [
          '10 sign-ins for this address failed in 15 minutes.',
          'New sign-ins from network addresses that you have not used before are rejected for now. Your sessions continue, and you can still sign in where you have signed in before. The lock expires automatically.',
          'To sign in from a new network address now, reset your password: that lifts the lock.',
        ]),
      ),
    alert: (to, alert, id) =>
      mail.deliver({
        ...alertEmail(to, publicUrl, alert),
        ...(id === undefined ? {} : { messageId: getMessageId(id, publicUrl) }),
      }),
    billing: email => mail.deliver(billingEmail(email, publicUrl)),
  }
}

/** Returns an email: short, plain text, with links only to the configured address. */
function toEmail(kind: Email['kind'], to: string, subject: string, paragraphs: readonly string[]): Email {
  return { kind, to, subject, text: `${paragraphs.join('\n\n')}\n` }
}

const maximumTexts = 20

/** Builds the email about an alert that began to fire. */
function alertEmail(to: string, publicUrl: string, { metric, threshold, project, texts }: AlertEmail): Email {
  const { title, unit } = metricRules[metric]
  const more = texts.length - maximumTexts
  return toEmail('alert', to, `Alert: ${title}`, [
    `An alert of ${project === null ? 'your account' : `the project “${project}”`} on gateway-ai fires. Its threshold is ${unit === '%' ? `${Number((threshold * 100).toPrecision(4))}%` : `${threshold} ${unit}`}.`,
    texts
      .slice(0, maximumTexts)
      .map(text => `${text}.`)
      .join('\n'),
    ...(more > 0 ? [`${more} more fire too.`] : []),
    metric === 'budget'
      ? 'No further email follows about a budget in the same period, unless its limit rises.'
      : 'No further email follows about the same value until it has fallen below 80% of the threshold.',
    `${publicUrl}/#/${metric === 'budget' ? 'alerts' : 'requests'}`,
  ])
}

const getMessageId = (id: string, publicUrl: string) => `<${id}@${new URL(publicUrl).hostname}>`

/** Emails about unpaid invoices and the grace period. Each states the cause, the time limit and the next step. */

/** An email about money to one owner of an account. */
export type BillingEmail = {
  readonly kind: BillingNotice['kind']
  readonly to: string
  /** Identifies the email among all emails of this gateway. */
  readonly id: string
  /** Null = the account owes nothing. */
  readonly grace: Grace | null
  /** Null = the email is not about an invoice. */
  readonly invoice: { readonly id: string; readonly totalUsd: number } | null
}

/** Builds the email. Its link leads to `publicUrl`, an origin. */
function billingEmail({ kind, to, id, grace, invoice }: BillingEmail, publicUrl: string): Email {
  const isInvoice = grace?.cause === 'invoice'
  const pay = 'Open Billing to pay the invoice or to replace the payment method:'
  const action = isInvoice ? pay : 'Open Billing to add a payment method:'
  const until = grace === null ? '' : `${new Date(grace.endsAt).toISOString().slice(0, 16).replace('T', ' ')} UTC`
  const texts: Readonly<Record<BillingNotice['kind'], readonly [subject: string, ...paragraphs: readonly string[]]>> = {
    invoice_unpaid: [
      'Your gateway-ai invoice is unpaid',
      `Invoice ${invoice?.id ?? ''} of ${(invoice?.totalUsd ?? 0).toFixed(2)} USD could not be collected.`,
      'The card was declined, your bank wants you to confirm the payment, or the account has no payment method.',
      pay,
    ],
    grace_began: [
      'Your gateway-ai grace period has started',
      isInvoice ? 'An invoice of your account is unpaid.' : 'Your account has no payment method.',
      `Chat requests work until ${until}. After that they are blocked until payment.`,
      action,
    ],
    grace_ended: [
      'Your gateway-ai grace period has ended',
      isInvoice ? 'An invoice of your account is still unpaid.' : 'Your account still has no payment method.',
      `Chat requests are blocked since ${until}. Access returns within seconds after the payment.`,
      action,
    ],
  }
  const [subject, ...paragraphs] = texts[kind]
  const messageId = getMessageId(id, publicUrl)
  return { ...toEmail(kind, to, subject, [...paragraphs, `${publicUrl}/#/billing`]), messageId }
}
