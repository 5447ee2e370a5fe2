/** Whether anyone can register. Owners invite users, and the operator creates accounts, in both modes. */
export const registrationModes = ['open', 'closed'] as const

export type RegistrationConfig = {
  readonly mode: (typeof registrationModes)[number]
  /** Email domains that may register; null = any. */
  readonly domains: readonly string[] | null
}

/** Returns true if the domain of an email address may register. */
export function isDomainOpen({ domains }: RegistrationConfig, email: string): boolean {
  return domains === null || domains.includes(domainOf(email))
}

/** Returns the domain of a normalized email address. */
export function domainOf(email: string): string {
  return email.slice(email.lastIndexOf('@') + 1)
}
