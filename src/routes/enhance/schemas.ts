import { Type } from '@sinclair/typebox'
import { maximumFreePrompt } from '../../http/public-endpoint.ts'

/** Body of `POST /api/v1/chat/enhance`. */
export const enhanceRequest = Type.Object(
  { prompt: Type.String({ minLength: 1, maxLength: maximumFreePrompt }) },
  { additionalProperties: false },
)
