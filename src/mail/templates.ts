/** Texts of the gateway's emails: short, plain text, with links only to the configured address. */
import { type AlertMetric, conditionText } from '../core/alerts/alerts.ts'
import type { BudgetPeriod } from '../core/billing/budget-period.ts'
import type { BillingNotice } from '../core/billing/grace.ts'

export type Email = {
  /** For the log, which contains nothing else of the email. */
  readonly kind:
    | 'invitation'
    | 'email_verification'
    | 'password_reset'
    | 'sign_in_locked'
    | 'soft_cap'
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

/** Builds the invitation to `to`. `publicUrl` has no trailing slash. */
export function invitationLetter(to: string, by: string, publicUrl: string, token: string): Email {
  return {
    kind: 'invitation',
    to,
    subject: 'You are invited to gateway-ai',
    text: lines(
      `${by} invited you to their account on gateway-ai.`,
      'Choose a password here within 7 days:',
      `${publicUrl}/#/invitation/${token}`,
      'If you do not know the sender, ignore this email.',
    ),
  }
}

/** Builds the email that confirms an account's address. */
export function verificationLetter(to: string, publicUrl: string, token: string): Email {
  return {
    kind: 'email_verification',
    to,
    subject: 'Confirm your email address for gateway-ai',
    text: lines(
      'Someone registered this address on gateway-ai. If it was you, confirm it within 24 hours with the password that you chose:',
      `${publicUrl}/#/verify/${token}`,
      'If it was not you, ignore this email. The account cannot be used, and you can still register the address yourself.',
    ),
  }
}

/** Builds the password reset email. */
export function resetLetter(to: string, publicUrl: string, token: string): Email {
  return {
    kind: 'password_reset',
    to,
    subject: 'Reset your gateway-ai password',
    text: lines(
      'Someone requested a password reset for this address.',
      'Choose a new password here within 30 minutes; all your sessions then end:',
      `${publicUrl}/#/reset/${token}`,
      'If another person may have used your account, revoke your API keys on the same page.',
      'If it was not you, ignore this email: your password does not change.',
    ),
  }
}

/** Builds the email to a user whose sign-in was locked. */
export function lockedLetter(to: string): Email {
  return {
    kind: 'sign_in_locked',
    to,
    subject: 'Your gateway-ai sign-in is locked',
    text: lines(
      '10 sign-ins for this address failed in 15 minutes.',
      'New sign-ins from network addresses that you have not used before are rejected for now. Your sessions continue, and you can still sign in where you have signed in before. The lock expires automatically.',
      'To sign in from a new network address now, reset your password: that lifts the lock.',
    ),
  }
}

/** Builds the email to an account's owner who used `percent` of the soft cap in a period. */
export function softCapLetter(to: string, percent: number, capUsd: number, period: BudgetPeriod): Email {
  return {
    kind: 'soft_cap',
    to,
    subject: `You used ${percent}% of your monthly soft cap`,
    text: lines(
      `Your account used ${percent}% of its soft cap of ${capUsd} USD for ${periodName(period)}.`,
      'Requests are not blocked. Change the cap under Billing.',
    ),
  }
}

/** An alert that began to fire. */
export type AlertEmail = {
  readonly metric: AlertMetric
  readonly threshold: number
  readonly value: number
  /** Name of the project that it is about; null = the account. */
  readonly project: string | null
}

/** Builds the email about an alert that began to fire. */
export function alertLetter(to: string, publicUrl: string, { metric, threshold, value, project }: AlertEmail): Email {
  const names = { spend: 'Spend', error_rate: 'Failed requests', latency: 'Latency' } as const
  return {
    kind: 'alert',
    to,
    subject: `Alert: ${names[metric]}`,
    text: lines(
      `In ${project === null ? 'your account' : `the project “${project}”`} on gateway-ai ${conditionText(metric, value)}. The threshold is ${threshold}.`,
      'Requests are not blocked. No further email follows until the value has fallen below 80% of the threshold.',
      `${publicUrl}/#/requests`,
    ),
  }
}

function periodName({ kind, startsAt, endsAt }: BudgetPeriod): string {
  const [from, to] = [startsAt, endsAt].map(at => new Date(at).toISOString().slice(0, 10))
  return kind === 'billing_cycle'
    ? `the billing cycle from ${from} to ${to} (UTC)`
    : `the calendar month ${from?.slice(0, 7)} (UTC)`
}

/** Joins paragraphs to the text of an email. */
export function lines(...paragraphs: readonly string[]): string {
  return `${paragraphs.join('\n\n')}\n`
}
