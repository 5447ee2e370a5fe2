/**
 * The vocabulary of the audit log: who acted, and the recorded actions. An action names the object and what happened to
 * it. Details are short and contain no secret and no prompt.
 */

/** Recorded actions. A new one is a line here and a call of `recordAudit` where the change is stored. */
export const auditActions = [
  'account.created',
  'account.changed',
  'account.resumed',
  'account.deleted',
  'limits.changed',
  'key.created',
  'key.changed',
  'key.rotated',
  'key.revoked',
  'member.invited',
  'member.joined',
  'member.role_changed',
  'member.removed',
  'member.anonymized',
  'invitation.withdrawn',
  'project.created',
  'project.changed',
  'project.archived',
  'project.member_added',
  'project.member_role_changed',
  'project.member_removed',
  'plan.changed',
  'payment_method.changed',
  'payment_method.removed',
  'soft_cap.changed',
  'session.created',
  'session.ended',
  'management_key.created',
  'management_key.revoked',
  'provider_key.created',
  'provider_key.rotated',
  'provider_key.deleted',
  'provider_key.changed',
  'model.switched',
  'sign_in.locked',
  'email.confirmed',
  'two_factor.enabled',
  'two_factor.disabled',
  'password.changed',
  'password.reset',
  'requests.exported',
  'audit.exported',
  'learning.deleted',
  'webhook.created',
  'webhook.changed',
  'webhook.deleted',
  'webhook.disabled',
  'webhook.secret_rotated',
  'webhook.tested',
  'webhook.redelivered',
  'alert.created',
  'alert.changed',
  'alert.deleted',
  'alert.tested',
] as const
export type AuditAction = (typeof auditActions)[number]

/** Who acts: a signed-in user, the operator on the command line, or the gateway itself. */
export type Actor =
  | {
      readonly kind: 'user'
      readonly userId: string
      /** Network address of the client, an IPv6 address as its network. */
      readonly address: string
      /** Name of the management key that acts for the user; absent = the user's own session. */
      readonly managementKey?: string
    }
  | { readonly kind: 'cli' | 'system' }

/** Short values by name: no secret, no prompt content. Undefined ones are left out. */
export type AuditDetails = Readonly<Record<string, string | number | boolean | null | undefined>>

export type AuditEntry = {
  readonly accountId: string
  readonly action: AuditAction
  /** ID of the changed object; absent = the account. */
  readonly target?: string
  readonly details?: AuditDetails
}

/** Returns the database for the changes of one actor, who appears in the audit log. */
export function actingAs<D extends object>(database: D, actor: Actor): D & { readonly actor: Actor } {
  return { ...database, actor }
}
