/** Who may become a user without the operator: anybody, the invited, or nobody. */
export const registrationModes = ['open', 'invitation', 'closed'] as const

export type RegistrationConfig = {
  readonly mode: (typeof registrationModes)[number]
  /** E-mail domains of those who may register; null = any. */
  readonly domains: readonly string[] | null
}

/** Whether the domain of an e-mail address is one of those that may register. */
export function isDomainOpen({ domains }: RegistrationConfig, email: string): boolean {
  return domains === null || domains.includes(email.slice(email.lastIndexOf('@') + 1))
}
