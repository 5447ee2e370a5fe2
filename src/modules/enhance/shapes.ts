import { Type } from '@sinclair/typebox'
import { queryTypes } from '../../core/chat.ts'
import { maximumFreePrompt } from '../../http/free.ts'

/** The body of `POST /api/v1/chat/enhance`. */
export const enhanceRequest = Type.Object(
  { prompt: Type.String({ minLength: 1, maxLength: maximumFreePrompt }) },
  { additionalProperties: false },
)

/** Its answer; `enhanced_prompt` is the prompt itself where nothing changed. */
export const enhancementResult = Type.Object({
  changed: Type.Boolean(),
  enhanced_prompt: Type.String(),
  query_type: Type.Union(queryTypes.map(type => Type.Literal(type))),
})
