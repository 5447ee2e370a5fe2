/** Bodies and the query that the routes of keys accept. */
import { Type } from '@sinclair/typebox'
import { strategies } from '../../core/chat/chat.ts'
import { maximumTags, tagNamePattern, tagValuePattern } from '../../core/request/tags.ts'
import { fallbackPolicies } from '../../core/validation/fallback-policy.ts'
import { checker, nullable, oneOf } from '../../core/validation/validate.ts'
import { nameSchema, projectIdSchema } from '../../http/common-fields.ts'
import { scopeLimitsSchema } from '../../http/scope-limits.ts'
import { modelPattern } from '../../models/allowed-models.ts'

const strict = { additionalProperties: false } as const
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
  hedge: nullable(Type.Boolean({ description: 'whether its requests hedge; null = as the account' })),
}
export const keyCreationSchema = Type.Object({ name: nameSchema, ...ruleFields }, strict)
export const keyChangeSchema = Type.Object({ name: Type.Optional(nameSchema), ...ruleFields }, strict)
export const keyListQuerySchema = Type.Object({ project_id: Type.Optional(projectIdSchema) }, strict)
export const keyRotationSchema = Type.Object(
  { overlap_seconds: Type.Optional(Type.Integer({ minimum: 0, maximum: 7 * 86_400 })) },
  strict,
)
export const checkKeyCreation = checker(keyCreationSchema)
export const checkKeyChange = checker(keyChangeSchema)
export const checkKeyRotation = checker(keyRotationSchema)
export const checkKeyListQuery = checker(keyListQuerySchema)
