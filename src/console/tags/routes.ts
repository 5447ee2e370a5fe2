/** Limits of tags: they apply to all requests of the account that carry the tag. */

import { Type } from '@sinclair/typebox'
import { tagNamePattern, tagValuePattern } from '../../core/request/tags.ts'
import { GatewayError } from '../../core/validation/errors.ts'
import { strictObject } from '../../core/validation/validate.ts'
import {
  changedLimits,
  list,
  type ShownTag,
  scopeLimitsSchema,
  shownScopeLimits,
  shownScopeUsed,
  tagShape,
} from '../../http/schemas.ts'
import type { ConsoleDeps } from '../deps.ts'
import { type Authenticate, sessionRoute, sessionRoutes } from '../routes.ts'
import { changeTag, type LimitedTag, limitedTags, usedByTag } from './store.ts'

const tagSchema = strictObject({
  name: Type.String({ pattern: tagNamePattern, description: '1 to 32 letters, digits and `_.-`' }),
  value: Type.String({ pattern: tagValuePattern, description: '1 to 64 letters, digits, spaces and `_.:/@+-`' }),
  limits: Type.Union([scopeLimitsSchema, Type.Null()]),
})

/** Routes under `/api/v1/tags`. */
export function tags({ announce, clock }: Pick<ConsoleDeps, 'announce' | 'clock'>, identify: Authenticate) {
  return sessionRoutes('tags', identify, [
    sessionRoute({
      route: 'GET /api/v1/tags',
      action: 'tags.see',
      summary: 'List tags with limits',
      answer: list(tagShape),
      async handle({ principal, database }) {
        const rows = await limitedTags(database, principal.accountId)
        return { data: rows.map(shownTag) }
      },
    }),
    sessionRoute({
      route: 'PUT /api/v1/tags',
      action: 'tags.change',
      summary: 'Set the limits of a tag',
      description: 'An omitted limit stays as it is, null is unlimited. `"limits": null` removes all of them.',
      body: tagSchema,
      answer: tagShape,
      errors: ['conflict'],
      async handle({ principal: { accountId }, body: { name, value, limits }, database }) {
        const changed = await changeTag(database, accountId, { name, value }, before =>
          changedLimits(before, limits, clock.now()),
        )
        if (changed === 'full')
          throw new GatewayError('conflict', 'Too many tags with limits. Remove unused ones first.')
        announce()
        const used = await usedByTag(database, accountId, { name, value })
        return shownTag({ name, value, limits: changed, ...used })
      },
    }),
  ])
}

function shownTag({
  name,
  value,
  limits,
  ...used
}: Omit<LimitedTag, 'limits'> & { readonly limits: LimitedTag['limits'] | null }): ShownTag {
  return { name, value, limits: limits && shownScopeLimits(limits), used: shownScopeUsed(used) }
}
