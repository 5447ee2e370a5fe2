import { type Static, Type } from '@sinclair/typebox'
import { id, list, named, orNull, shape, text, time } from '../../http/shapes.ts'

export const ownSessionShape = named('OwnSession', {
  id: id('ses'),
  user_agent: orNull(text('Mozilla/5.0')),
  created_at: time,
  last_used_at: time,
  expires_at: time,
  current: Type.Boolean({ description: 'the session that asks' }),
})
export type ShownSession = Static<typeof ownSessionShape>
export const ownSessionsShape = list(ownSessionShape)

export const resetAskedShape = shape({ accepted: Type.Literal(true) })
