/** Who can register without the operator: anyone, invited users, or no one. */
export const registrationModes = ['open', 'invitation', 'closed'] as const

export type RegistrationConfig = {
  readonly mode: (typeof registrationModes)[number]
  /** Email domains that may register; null = any. */
  readonly domains: readonly string[] | null
}

/** Returns true if the domain of an email address may register. */
export function isDomainOpen({ domains }: RegistrationConfig, email: string): boolean {
  return domains === null || domains.includes(email.slice(email.lastIndexOf('@') + 1))
}
