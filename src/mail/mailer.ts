import type { BudgetPeriod } from '../core/billing/budget-period.ts'
import { type BillingEmail, billingEmail } from './billing-emails.ts'
import type { Delivery, MailQueue } from './queue.ts'
import {
  type AlertEmail,
  alertLetter,
  invitationLetter,
  lockedLetter,
  resetLetter,
  softCapLetter,
  verificationLetter,
} from './templates.ts'

/** Sends each kind of email in the background. Tokens are sent only by email. */
export type Mailer = {
  invitation(to: string, by: string, token: string): void
  emailVerification(to: string, token: string): void
  passwordReset(to: string, token: string): void
  signInLocked(to: string): void
  softCap(to: string, percent: number, capUsd: number, period: BudgetPeriod): void
  alert(to: string, alert: AlertEmail): void
  /** Sends one email and waits for the mail server's response, which decides the state of the stored notice. */
  billing(email: BillingEmail): Promise<Delivery>
}

/** Creates a mailer over `mail`. Links lead to `publicUrl`, never to a host that a request names. */
export function createMailer(mail: Pick<MailQueue, 'send' | 'deliver'>, publicUrl: string): Mailer {
  return {
    invitation: (to, by, token) => mail.send(invitationLetter(to, by, publicUrl, token)),
    emailVerification: (to, token) => mail.send(verificationLetter(to, publicUrl, token)),
    passwordReset: (to, token) => mail.send(resetLetter(to, publicUrl, token)),
    signInLocked: to => mail.send(lockedLetter(to)),
    softCap: (to, percent, capUsd, period) => mail.send(softCapLetter(to, percent, capUsd, period)),
    alert: (to, alert) => mail.send(alertLetter(to, publicUrl, alert)),
    billing: email => mail.deliver(billingEmail(email, publicUrl)),
  }
}
