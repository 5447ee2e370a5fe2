/** Expiry and rules of a key as a request body names them. */
import { type Static, Type } from '@sinclair/typebox'
import { isAllowed, isAllowedIn } from '../../core/accounts/roles.ts'
import type { AuditDetails } from '../../core/audit/audit.ts'
import { continuePolicies, fallbackPolicies, strategies } from '../../core/chat/chat.ts'
import { constraintsSchema } from '../../core/policy/constraints.ts'
import { maximumTags, tagNamePattern, tagValuePattern } from '../../core/request/tags.ts'
import { timeIn } from '../../core/text/utc-days.ts'
import { toUsd } from '../../core/usage/money.ts'
import { pick, shownFields } from '../../core/usage/shown-fields.ts'
import { invalidField, nullable, oneOf, strictObject } from '../../core/validation/validate.ts'
import type { ApiKey } from '../../database/tables.ts'
import type { Principal } from '../../http/authentication.ts'
import {
  changedLimits,
  nameSchema,
  projectIdSchema,
  scopeLimitsSchema,
  shownScopeLimits,
  shownScopeUsed,
} from '../../http/schemas.ts'
import { modelPattern } from '../../models/allowed-models.ts'
import { forbidden, notFound, type SessionRequest } from '../routes.ts'
import type { ShownKey, ShownKeyPage } from './schemas.ts'
import { findKey, type KeyChange, type KeyRules, type KeyUsage, type LineageKey } from './stores/key-lineages.ts'

/** An omitted field stays as it is. */
type KeyRulesBody = Partial<Omit<KeyRules, 'limits'>> & {
  readonly expires_at?: string | null
  readonly limits?: Static<typeof scopeLimitsSchema> | null
  readonly project_id?: string | null
}

/** Returns the expiry and the rules that a body names. */
export function rulesIn(body: KeyRulesBody, before: ApiKey['limits'], now: number): Omit<KeyChange, 'name' | 'web'> {
  const { expires_at: expiry, limits, tags, project_id: projectId, ...rules } = body
  const { models, strategy, fallback, hedge, constraints } = rules
  return {
    ...{ models, strategy, fallback, continue: rules.continue, hedge, constraints, projectId },
    expiresAt: expiry == null ? expiry : futureTime(expiry, now),
    limits: limits === undefined ? undefined : changedLimits(before, limits, now),
    tags: tags && Object.keys(tags).length === 0 ? null : tags,
  }
}

const isoTime = /^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d{1,9})?)?(Z|[+-]\d\d:\d\d)$/

function futureTime(text: string, now: number): Date {
  const time = isoTime.test(text) ? timeIn(text) : Number.NaN
  if (time > now) return new Date(time)
  throw invalidField('expires_at', 'must be a future ISO 8601 time, such as `2030-01-31T00:00:00Z`')
}

/** Bodies and the query that the routes of keys accept. */

/** Fields that creation and change share. In a change, an omitted one stays as it is. */
const ruleFields = {
  expires_at: nullable(Type.String({ maxLength: 40, description: 'a time in ISO 8601' })),
  web: Type.Optional(Type.Boolean()),
  limits: nullable(scopeLimitsSchema),
  models: nullable(
    Type.Array(
      Type.String({
        pattern: modelPattern,
        description: 'a model like `openai/gpt-5.5`, or a beginning like `anthropic/*`',
      }),
      { minItems: 1, maxItems: 50 },
    ),
  ),
  tags: nullable(
    Type.Record(Type.String({ pattern: tagNamePattern }), Type.String({ pattern: tagValuePattern }), {
      additionalProperties: false,
      maxProperties: maximumTags,
      description: `an object of at most ${maximumTags} strings: names of 1 to 32 letters, digits and \`_.-\`, values of 1 to 64 of these, spaces and \`:/@+\``,
    }),
  ),
  strategy: nullable(oneOf(strategies)),
  project_id: nullable(projectIdSchema),
  fallback: nullable(oneOf(fallbackPolicies)),
  continue: nullable(oneOf(continuePolicies)),
  hedge: nullable(Type.Boolean({ description: 'whether its requests hedge; null = as the account' })),
  constraints: nullable(constraintsSchema),
}
export const keyCreationSchema = strictObject({ name: nameSchema, ...ruleFields })
export const keyChangeSchema = strictObject({ name: Type.Optional(nameSchema), ...ruleFields })
export const keyListQuerySchema = strictObject({ project_id: Type.Optional(projectIdSchema) })
export const keyRotationSchema = strictObject({
  overlap_seconds: Type.Optional(Type.Integer({ minimum: 0, maximum: 7 * 86_400 })),
})

/** Rights of a user at API keys: a key that the user may not see is like a missing one. */

/** Returns the key with this ID if the list of keys shows it to the user; otherwise throws the error for an unknown ID. */
export async function visibleKey({ principal, id, database }: SessionRequest): Promise<ApiKey> {
  const row = await findKey(database, principal.accountId, id)
  const { role, userId, projects } = principal
  const isVisible =
    row?.userId === userId || isAllowed(role, 'keys.all') || (row?.projectId != null && projects.has(row.projectId))
  if (row === null || !isVisible) throw notFound()
  return row
}

/**
 * Returns the key with this ID if the user may manage it. Throws `forbidden` for another user's key in a project of the user,
 * and the error for an unknown ID for all other keys.
 */
export async function managedKey({ principal, id, database }: SessionRequest): Promise<ApiKey> {
  const row = await findKey(database, principal.accountId, id)
  if (row === null) throw notFound()
  const { projectId } = row
  if (isAllowedIn(principal, 'keys.all', projectId)) return row
  if (row.userId === principal.userId && isAllowedIn(principal, 'keys.own', projectId)) return row
  throw projectId !== null && principal.projects.has(projectId) ? forbidden() : notFound()
}

/**
 * Throws unless the user may have keys of `holderId` in a project, or in none. The error is that of an unknown ID for a project
 * of others.
 */
export function refuseProject(principal: Principal, projectId: string | null, holderId: string): void {
  if (isAllowedIn(principal, holderId === principal.userId ? 'keys.own' : 'keys.all', projectId)) return
  throw projectId === null || principal.projects.has(projectId) ? forbidden() : notFound()
}

/** Keys, their lineages and their changes in the API's form. */

const unused = { tokens: 0, microcents: 0, monthMicrocents: 0 }

/** Converts a key with the usage of its lineage to its API form. */
export function shownKey(row: ApiKey, usage: KeyUsage | undefined): ShownKey {
  const { requests = 0, inputTokens = 0, outputTokens = 0, microcents = 0, now = unused } = usage ?? {}
  return {
    ...shownKeyFace(row),
    ...shownFields(pick(row, [...ruleNames, 'userId', 'web', 'projectId'])),
    usage: {
      requests,
      input_tokens: inputTokens,
      output_tokens: outputTokens,
      total_tokens: inputTokens + outputTokens,
      cost_usd: toUsd(microcents),
    },
    limits: row.limits && shownScopeLimits(row.limits),
    used: shownScopeUsed(now),
  }
}

const ruleNames = ['models', 'tags', 'strategy', 'fallback', 'continue', 'hedge', 'constraints'] as const

/** Returns what tells a key: name, prefix and times. */
export function shownKeyFace(key: LineageKey & Pick<ApiKey, 'name'>) {
  return { ...shownFields(pick(key, ['id', 'name', ...keyTimes])), prefix: getPrefix(key) }
}

const keyTimes = ['createdAt', 'lastUsedAt', 'revokedAt', 'expiresAt'] as const

/** Returns the lineage of a key, oldest key first, and its neighbors in it. */
export function shownLineage(
  id: string,
  keys: readonly LineageKey[],
): Pick<ShownKeyPage, 'replaces' | 'replaced_by' | 'lineage'> {
  const at = keys.findIndex(key => key.id === id)
  return {
    replaces: keys[at - 1]?.id ?? null,
    replaced_by: keys[at + 1]?.id ?? null,
    lineage: keys.map(key => ({ ...shownFields(pick(key, ['id', ...keyTimes])), prefix: getPrefix(key) })),
  }
}

/** Returns the new values of a change for the audit log, by their names in the API; lists and objects as JSON. */
export function auditedChange(change: KeyChange): AuditDetails {
  const { expiresAt, limits, models, tags, constraints, projectId, ...others } = change
  const asJson = (value: object | null | undefined) => value && JSON.stringify(value)
  return {
    ...others,
    expires_at: expiresAt === null ? null : expiresAt?.toISOString(),
    limits: asJson(limits && shownScopeLimits(limits)),
    models: asJson(models),
    tags: asJson(tags),
    constraints: asJson(constraints),
    project_id: projectId,
  }
}

export const getPrefix = ({ publicId }: Pick<ApiKey, 'publicId'>) => `gw_live_${publicId}…`
