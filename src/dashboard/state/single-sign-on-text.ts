import type { SingleSignOnFailure } from '../../core/accounts/single-sign-on.ts'

const operator = 'Ask the operator of this gateway.'
const advice: Readonly<Record<SingleSignOnFailure, string>> = {
  denied: 'You or the identity provider canceled the sign-in.',
  expired: 'The sign-in took longer than 10 minutes, was used before, or began in another browser. Sign in again.',
  rejected: `The response of the identity provider failed a security check. Sign in again. ${operator}`,
  unavailable: 'The identity provider does not respond. Sign in again in a few minutes.',
  misconfigured: `The gateway and the identity provider disagree about their configuration. ${operator}`,
  email_unverified: 'The identity provider has not verified your email address. Verify it there and sign in again.',
  domain_not_allowed: `Email addresses of your domain cannot sign in. ${operator}`,
  no_role: 'None of your groups may use this gateway. Ask an owner of the account.',
  other_account: `Your email address belongs to another account of this gateway. ${operator}`,
  removed: 'You were removed from the account. Ask an owner for an invitation.',
}

/** Returns what a failed single sign-on means and what to do. Unknown codes come from a later release. */
export function failureText(failure: string): string {
  return Object.entries(advice).find(([code]) => code === failure)?.[1] ?? advice.rejected
}
