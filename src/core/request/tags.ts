/**
 * Tags of a request: labels by which an account sets limits and groups usage. They come from the API key, the
 * `x-gateway-tags` header, an agent's session ID, and fields of `metadata` that are short enough. Values are the caller's own
 * words and are stored in the usage record.
 */

import { Type } from '@sinclair/typebox'
import type { Caller } from '../limits/plans.ts'
import { keyScopeName, maximumScopes, noScopes, type Scope, tagScopeName } from '../limits/scopes.ts'
import { invalidField, nullable } from '../validation/validate.ts'

export type Tags = Readonly<Record<string, string>>

export const tagNamePattern = '^[A-Za-z0-9_.-]{1,32}$'
export const tagValuePattern = '^[A-Za-z0-9_.:/@+ -]{1,64}$'
/** Maximum number of tags of one request. More from `metadata` are not tags; more in the header are an error. */
export const maximumTags = maximumScopes - 2

const nameShape = new RegExp(tagNamePattern)
const valueShape = new RegExp(tagValuePattern)
const header = 'x-gateway-tags'

/** Returns the tags of a request's headers: `x-gateway-tags: team=search,env=prod`, and an agent's session. Throws `invalid_request`. */
export function tagsOfHeaders(headers: Headers, session = findAgentSession(headers)): Tags | null {
  const sent = headers.get(header)
  if (sent === null && session === null) return null
  const tags: Record<string, string> = {}
  for (const pair of (sent ?? '').split(',')) {
    if (pair.trim() === '') continue
    const at = pair.indexOf('=')
    const [name, value] = [pair.slice(0, at).trim(), pair.slice(at + 1).trim()]
    if (at < 0 || !nameShape.test(name) || !valueShape.test(value)) throw invalidField(header, tagRule)
    tags[name] = value
  }
  if (Object.keys(tags).length > maximumTags) throw invalidField(header, tagRule)
  if (session !== null) tags.session ??= valueShape.test(session) ? session : getDigest(session)
  return tags
}

const tagRule = `must be at most ${maximumTags} pairs like \`team=search,env=prod\`: names of 1 to 32 letters, digits and \`_.-\`, values of 1 to 64 of these, spaces and \`:/@+\``

const getDigest = (text: string) => new Bun.CryptoHasher('sha256').update(text).digest('hex').slice(0, 32)

type Tagged = { readonly tags?: Tags | null; readonly metadata: Tags | null }

/**
 * Returns all tags of a request; undefined = none. The key's own come first, so that a request cannot replace them; then
 * header and session, then `metadata`. The key's project is one more, which no request can set.
 */
export function findTags(
  { tags: ofKey, projectId }: Pick<Caller, 'tags' | 'projectId'>,
  { tags: sent, metadata }: Tagged,
): Tags | undefined {
  if (ofKey === undefined && projectId === undefined && sent == null && metadata === null) return undefined
  const tags: Record<string, string> = { ...ofKey }
  let count = Object.keys(tags).length
  for (const source of [sent, metadata])
    for (const [name, value] of Object.entries(source ?? {})) {
      if (count >= maximumTags) break
      if (Object.hasOwn(tags, name) || !nameShape.test(name) || !valueShape.test(value)) continue
      tags[name] = value
      count++
    }
  if (projectId !== undefined) tags[projectTagName] = projectId
  return count === 0 && projectId === undefined ? undefined : tags
}

/** Returns the limited scopes among a request's key, project and tags. */
export function findScopes(caller: Caller, tags: Tags | undefined): readonly Scope[] {
  const { keyId, lineageId = keyId, keyLimits, tagLimits } = caller
  if (keyLimits === undefined && (tagLimits === undefined || tags === undefined)) return noScopes
  const scopes: Scope[] = keyLimits === undefined ? [] : [{ name: keyScopeName(lineageId), limits: keyLimits }]
  for (const [name, value] of Object.entries(tags ?? {})) {
    const scope = tagScopeName(name, value)
    const limits = tagLimits?.get(scope)
    if (limits !== undefined) scopes.push({ name: scope, limits })
  }
  return scopes
}

/**
 * The project of a request is a tag that only the gateway sets: no header and no `metadata` field can have its name. So the
 * limits, the daily totals and the filters of tags serve projects as well, and a record keeps the project of its time.
 */

/** Not a name that `tagNamePattern` allows. */
export const projectTagName = '$project'

/** Returns the tag of a project's requests in the form of the daily totals. */
export const projectTag = (projectId: string) => `${projectTagName}=${projectId}`

/** Returns true if the scope of a limit is a project. */
export const isProjectScope = (scope: string) => scope.startsWith(`${tagScopeName(projectTagName, '')}`)

type Labels = Readonly<Record<string, string>>

/** Returns the project of stored tags, and the tags that the client knows; null = none. */
export function splitProject(tags: Labels | null): { readonly projectId: string | null; readonly tags: Labels | null } {
  if (tags === null || !Object.hasOwn(tags, projectTagName)) return { projectId: null, tags }
  const { [projectTagName]: projectId = null, ...others } = tags
  return { projectId, tags: Object.keys(others).length === 0 ? null : others }
}

/** Headers in which agents name their session: Codex, Claude Code, OpenRouter's clients. The first present one counts. */
const sessionHeaders = ['x-claude-code-session-id', 'thread-id', 'session-id', 'session_id', 'x-session-id'] as const

const maximumCharacters = 1024

/**
 * `prompt_cache_key` of every API form. Another type is rejected: it would reach the provider without the account's digest, and be
 * the same key for all accounts.
 */
export const promptCacheKey = nullable(Type.String({ maxLength: maximumCharacters }))

/**
 * Returns the session ID that an agent sends; null = none. It names the conversation unless the body does in `prompt_cache_key`.
 * The gateway keeps only a digest of the name. The field itself still goes to providers that take it.
 */
export function findAgentSession(headers: Headers): string | null {
  for (const name of sessionHeaders) {
    const value = headers.get(name)
    if (value !== null && value !== '') return value.slice(0, maximumCharacters)
  }
  return null
}
