/** Whose requests a user sees, as SQL: all of the account, or those of the own keys and of projects. */
import type { Sql, TransactionSql } from 'postgres'
import { projectTag, projectTagName } from '../core/request/tags.ts'

/**
 * Usage of an account, or of one user's keys and of the requests in projects. Required by every query, so that none is
 * unscoped.
 */
export type UsageScope = {
  readonly accountId: string
  /** Null = all of the account. */
  readonly userId: string | null
  /** Projects of the user; absent = none. */
  readonly projectIds?: readonly string[]
}

type Queries = Sql | TransactionSql

/** Returns true if a user sees requests of foreign keys, because they belong to a project. */
export function seesProjects({ userId, projectIds = [] }: UsageScope): boolean {
  return userId !== null && projectIds.length > 0
}

/** SQL condition for usage records, by the project at the time of the request; begins with `and`, or is empty. */
export function visibleRecords(sql: Queries, scope: UsageScope) {
  const { userId, projectIds = [] } = scope
  if (userId === null) return sql``
  if (projectIds.length === 0) return sql`and ${ofOwnKey(sql, scope)}`
  return sql`and (${ofOwnKey(sql, scope)} or tags ->> ${projectTagName} in ${listed(sql, projectIds)})`
}

/** The same for rejected requests, which have no tags: by the present project of the key. */
export function visibleRejected(sql: Queries, { accountId, userId, projectIds = [] }: UsageScope) {
  if (userId === null) return sql``
  return sql`and key_id in (
    select id from api_keys where account_id = ${accountId} and (user_id = ${userId} or project_id in ${listed(sql, projectIds)}))`
}

/** The same for daily totals of tags. */
export function visibleTagDays(sql: Queries, scope: UsageScope) {
  const { userId, projectIds = [] } = scope
  return userId === null ? sql`` : sql`and (${ofOwnKey(sql, scope)} or ${ofProjects(sql, projectIds)})`
}

/** SQL condition for lines of the user's own keys. */
export function ofOwnKey(sql: Queries, { accountId, userId }: UsageScope) {
  return sql`key_id in (select id from api_keys where account_id = ${accountId} and user_id = ${userId})`
}

/** SQL condition for daily totals of the tags of projects. */
export function ofProjects(sql: Queries, projectIds: readonly string[]) {
  return sql`tag in ${listed(sql, projectIds.map(projectTag))}`
}

function listed(sql: Queries, values: readonly string[]) {
  return sql`(select json_array_elements_text(${JSON.stringify(values)}::text::json))`
}
