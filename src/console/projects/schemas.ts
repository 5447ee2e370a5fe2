import { type Static, Type } from '@sinclair/typebox'
import { projectRoles } from '../../core/accounts/roles.ts'
import { constraintsSchema } from '../../core/policy/constraints.ts'
import { oneOf } from '../../core/validation/validate.ts'
import {
  count,
  id,
  list,
  namedSchema,
  orNull,
  scopeLimitsShape,
  scopeUsedShape,
  text,
  time,
} from '../../http/schemas.ts'

const memberShape = namedSchema('ProjectMember', {
  user_id: id('usr'),
  email: text('ada@example.com'),
  role: oneOf(projectRoles),
})

export const projectShape = namedSchema('Project', {
  id: id('prj'),
  name: text('search'),
  created_at: time,
  archived_at: { ...orNull(time), description: 'an archived project has no valid keys; its usage stays' },
  role: {
    ...orNull(oneOf(projectRoles)),
    description: 'your role in the project; null = you see it as an owner or admin of the account',
  },
  limits: {
    ...orNull(scopeLimitsShape),
    description: 'limits of all its requests beside those of the account and of the key; null = none',
  },
  constraints: {
    ...orNull(constraintsSchema),
    description: 'constraints on who may receive its requests, beside those of account and key; null = none',
  },
  used: scopeUsedShape,
  active_keys: { ...count, description: 'keys that are valid now' },
  members: Type.Array(memberShape),
})
export const projectListShape = list(projectShape)
export type ShownProject = Static<typeof projectShape>
