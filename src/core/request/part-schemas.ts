/** Schemas of texts, images, documents and tool calls, which the conversations of several endpoints share. */
import { type Static, type TObject, type TProperties, Type } from '@sinclair/typebox'
import type { CacheMark } from '../chat/chat.ts'
import { nullable, oneOf } from '../validation/validate.ts'

/** Chat text. Bounded only by the body limit (8 MB, 32 MB with images). */
export const bodyText = Type.String({ boundedBy: 'body' })

/** URL of an image. A `data:` URL contains the image, so only the body limit bounds it. */
export const imageAddress = Type.String({
  boundedBy: 'body',
  pattern: '^(?:[hH][tT][tT][pP][sS]?://|[dD][aA][tT][aA]:)',
  description: 'an http, https or data: address',
})

/** Returns `Type.Object` for objects that allow unknown fields, or for ones that do not. */
export function closedOrOpen(additionalProperties: boolean): <P extends TProperties>(properties: P) => TObject<P> {
  return properties => Type.Object(properties, { additionalProperties })
}

/** Returns the schema of a document. There is no file storage for clients, so `file_id` is not supported. */
export function filePartSchema(additionalProperties: boolean) {
  const object = closedOrOpen(additionalProperties)
  return object({
    type: Type.Literal('file'),
    file: object({
      file_id: Type.Optional(
        Type.Null({ unmatched: 'unsupported_parameter', description: 'omitted: send the document in `file_data`' }),
      ),
      file_data: nullable(
        Type.String({
          boundedBy: 'body',
          pattern: '^[dD][aA][tT][aA]:[aA][pP][pP][lL][iI][cC][aA][tT][iI][oO][nN]/[pP][dD][fF];[bB][aA][sS][eE]64,',
          description: 'a PDF document as a `data:application/pdf;base64,` address',
          unmatched: 'unsupported_parameter',
        }),
      ),
      filename: nullable(Type.String({ maxLength: 256 })),
    }),
    cache_control: cacheMarkSchema(additionalProperties),
  })
}

/** Name of a declared tool. Upstreams with a shorter limit receive a shorter name. */
export const functionName = Type.String({
  maxLength: 128,
  pattern: '^[A-Za-z0-9_-]+$',
  description: 'a name of 1 to 128 letters, digits, `_` or `-`',
})

/** Name of a response format. */
export const formatName = Type.String({
  maxLength: 64,
  pattern: '^[A-Za-z0-9_-]+$',
  description: 'a name of 1 to 64 letters, digits, `_` or `-`',
})

/** Name in a call of the history: a model may have invented it. */
export const calledName = Type.String({ minLength: 1, maxLength: 256 })

export const callId = Type.String({ minLength: 1, maxLength: 512 })

/** Returns the schema of a tool call in the conversation history, with Google's signature if present. */
export function toolCallSchema(additionalProperties: boolean) {
  const object = closedOrOpen(additionalProperties)
  const google = object({ thought_signature: nullable(bodyText) })
  return object({
    id: callId,
    // Some clients omit it in the history: there is only one type of call.
    type: nullable(oneOf(['function'], 'unsupported_parameter')),
    function: object({ name: calledName, arguments: bodyText }),
    extra_content: nullable(object({ google: nullable(google) })),
  })
}

/** Returns the schema of Anthropic's `cache_control`, which clients of several APIs send. */
export function cacheMarkSchema(additionalProperties: boolean) {
  return nullable(
    Type.Object({ type: oneOf(['ephemeral']), ttl: nullable(oneOf(['5m', '1h'])) }, { additionalProperties }),
  )
}

/** A wire object that may carry a mark. */
export type WireCacheMark = { readonly cache_control?: Static<ReturnType<typeof cacheMarkSchema>> }

/** Returns the mark as a field of a chat request's part; an empty object = none. */
export function getCacheMark({ cache_control }: WireCacheMark): { readonly cache?: CacheMark } {
  return cache_control == null ? {} : { cache: cache_control.ttl ?? '5m' }
}
