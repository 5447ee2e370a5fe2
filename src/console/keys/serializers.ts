/** Keys, their lineages and their changes in the API's form. */
import type { AuditDetails } from '../../core/audit/audit.ts'
import { toUsd } from '../../core/usage/money.ts'
import type { ApiKey } from '../../database/tables.ts'
import { shownScopeLimits, shownScopeUsed } from '../../http/scope-limits.ts'
import type { ShownKey, ShownKeyPage } from './schemas.ts'
import type { KeyChange, KeyUsage, LineageKey } from './stores/key-lineages.ts'

const unused = { tokens: 0, microcents: 0, monthMicrocents: 0 }

/** Converts a key with the usage of its lineage to its API form. */
export function shownKey(row: ApiKey, usage: KeyUsage | undefined): ShownKey {
  return {
    id: row.id,
    name: row.name,
    prefix: prefixOf(row),
    user_id: row.userId,
    created_at: row.createdAt.toISOString(),
    last_used_at: row.lastUsedAt?.toISOString() ?? null,
    revoked_at: row.revokedAt?.toISOString() ?? null,
    expires_at: row.expiresAt?.toISOString() ?? null,
    web: row.web,
    fallback: row.fallback,
    hedge: row.hedge,
    usage: {
      requests: usage?.requests ?? 0,
      input_tokens: usage?.inputTokens ?? 0,
      output_tokens: usage?.outputTokens ?? 0,
      total_tokens: (usage?.inputTokens ?? 0) + (usage?.outputTokens ?? 0),
      cost_usd: toUsd(usage?.microcents ?? 0),
    },
    limits: row.limits && shownScopeLimits(row.limits),
    used: shownScopeUsed(usage?.now ?? unused),
    models: row.models,
    tags: row.tags,
    strategy: row.strategy,
    project_id: row.projectId,
  }
}

/** Returns the lineage of a key, oldest key first, and its neighbors in it. */
export function shownLineage(
  id: string,
  keys: readonly LineageKey[],
): Pick<ShownKeyPage, 'replaces' | 'replaced_by' | 'lineage'> {
  const at = keys.findIndex(key => key.id === id)
  return {
    replaces: keys[at - 1]?.id ?? null,
    replaced_by: keys[at + 1]?.id ?? null,
    lineage: keys.map(key => ({
      id: key.id,
      prefix: prefixOf(key),
      created_at: key.createdAt.toISOString(),
      last_used_at: key.lastUsedAt?.toISOString() ?? null,
      revoked_at: key.revokedAt?.toISOString() ?? null,
      expires_at: key.expiresAt?.toISOString() ?? null,
    })),
  }
}

/** Returns the new values of a change for the audit log, by their names in the API; lists and objects as JSON. */
export function auditedChange(change: KeyChange): AuditDetails {
  const { expiresAt, limits, models, tags, projectId, ...others } = change
  const asJson = (value: object | null) => value && JSON.stringify(value)
  return {
    ...others,
    ...(expiresAt === undefined ? {} : { expires_at: expiresAt?.toISOString() ?? null }),
    ...(limits === undefined ? {} : { limits: asJson(limits && shownScopeLimits(limits)) }),
    ...(models === undefined ? {} : { models: asJson(models) }),
    ...(tags === undefined ? {} : { tags: asJson(tags) }),
    ...(projectId === undefined ? {} : { project_id: projectId }),
  }
}

const prefixOf = ({ publicId }: Pick<ApiKey, 'publicId'>) => `gw_live_${publicId}…`
