import type { Static } from '@sinclair/typebox'
import { namedSchema, orNull, scopeLimitsShape, scopeUsedShape, text } from '../../http/schemas.ts'

export const tagShape = namedSchema('LimitedTag', {
  name: text('team'),
  value: text('search'),
  limits: orNull(scopeLimitsShape),
  used: scopeUsedShape,
})
/** A tag with its limits and usage; null = no limits. */
export type ShownTag = Static<typeof tagShape>
