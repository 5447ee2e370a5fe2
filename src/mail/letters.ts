/** What the gateway writes to people: short, plain text, and links under the configured address alone. */

export type Letter = {
  /** For the log, which learns nothing else. */
  readonly kind: 'invitation' | 'email_verification' | 'password_reset' | 'sign_in_locked' | 'soft_cap'
  readonly to: string
  readonly subject: string
  readonly text: string
}

/** To whoever is invited. `publicUrl` has no slash at its end. */
export function invitationLetter(to: string, by: string, publicUrl: string, token: string): Letter {
  return {
    kind: 'invitation',
    to,
    subject: 'You are invited to gateway-ai',
    text: lines(
      `${by} invites you to their account on gateway-ai.`,
      'Choose a password here within seven days:',
      `${publicUrl}/#/invitation/${token}`,
      'If you do not know them, do nothing.',
    ),
  }
}

/** To the address that an account was registered for. */
export function verificationLetter(to: string, publicUrl: string, token: string): Letter {
  return {
    kind: 'email_verification',
    to,
    subject: 'Confirm your e-mail address for gateway-ai',
    text: lines(
      'Somebody, most likely you, registered this address. Confirm it within 24 hours with the password that you chose:',
      `${publicUrl}/#/verify/${token}`,
      'If it was not you, do nothing: the account stays without use, and you can still register or reset the password yourself.',
    ),
  }
}

/** To whoever asked for a new password. */
export function resetLetter(to: string, publicUrl: string, token: string): Letter {
  return {
    kind: 'password_reset',
    to,
    subject: 'A new password for gateway-ai',
    text: lines(
      'Somebody, most likely you, asked for a new password for this address.',
      'Choose it here within 30 minutes; all your sessions then end:',
      `${publicUrl}/#/reset/${token}`,
      'If you fear that somebody else used your account, let the page revoke your API keys too.',
      'If it was not you, do nothing: your password stays as it is.',
    ),
  }
}

/** To whoever's sign-in was locked. */
export function lockedLetter(to: string): Letter {
  return {
    kind: 'sign_in_locked',
    to,
    subject: 'Sign-in to gateway-ai is locked for a while',
    text: lines(
      'There were ten failed sign-ins under this address within 15 minutes.',
      'For a while nobody can sign in under it from a network address that is new. Where you have signed in before you still can, and your sessions go on. The lock ends by itself.',
      'If you are at a new place, ask for a new password: that lifts the lock. If it was not you, check that your password is long.',
    ),
  }
}

/** To the owners of an account. `percent` of the month's soft cap is used. */
export function softCapLetter(to: string, percent: number, capUsd: number, month: string): Letter {
  return {
    kind: 'soft_cap',
    to,
    subject: `${percent} % of the month’s soft cap is used`,
    text: lines(
      `Your account has used ${percent} % of its soft cap of ${capUsd} USD for ${month} (UTC).`,
      'Nothing is blocked by it. It can be changed under billing.',
    ),
  }
}

function lines(...paragraphs: readonly string[]): string {
  return `${paragraphs.join('\n\n')}\n`
}
