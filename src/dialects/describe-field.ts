/** Accepted values of request fields in words, from the schemas that check them. */
import type { TSchema } from '@sinclair/typebox'
import type { recordedDialects } from '../core/usage/usage-record.ts'
import { describeExpected } from '../core/validation/validate.ts'
import { compatibleSchema } from './chat-completions/request.ts'
import { decisionsSchema } from './decisions/request.ts'
import { embeddingsSchema } from './embeddings/routes.ts'
import { generateSchema } from './gemini/request.ts'
import { messagesSchema } from './messages/request.ts'
import { nativeSchema } from './native/request.ts'
import { responsesSchema } from './responses/request.ts'

type Fields = { readonly properties: Readonly<Record<string, TSchema>> }

const schemas: Readonly<Record<(typeof recordedDialects)[number], Fields>> = {
  native: nativeSchema,
  chat_completions: compatibleSchema,
  responses: responsesSchema,
  messages: messagesSchema,
  gemini: generateSchema,
  embeddings: embeddingsSchema,
  decisions: decisionsSchema,
}

/** Returns the values that a top-level field accepts, such as `a number from 0 to 2`; null = the dialect has no such field. */
export function describeField(dialect: (typeof recordedDialects)[number] | null, field: string): string | null {
  const properties = dialect === null ? {} : schemas[dialect].properties
  const schema = Object.hasOwn(properties, field) ? properties[field] : undefined
  return schema === undefined ? null : describeExpected(schema)
}
