import { type Static, Type } from '@sinclair/typebox'
import type { CacheMark } from '../chat/chat.ts'
import { nullable, oneOf } from '../validation/validate.ts'

/** Returns the schema of Anthropic's `cache_control`, which clients of several APIs send. */
export function cacheMarkSchema(additionalProperties: boolean) {
  return nullable(
    Type.Object({ type: oneOf(['ephemeral']), ttl: nullable(oneOf(['5m', '1h'])) }, { additionalProperties }),
  )
}

/** A wire object that may carry a mark. */
export type WireCacheMark = { readonly cache_control?: Static<ReturnType<typeof cacheMarkSchema>> }

/** Returns the mark as a field of a chat request's part; an empty object = none. */
export function cacheMarkOf({ cache_control }: WireCacheMark): { readonly cache?: CacheMark } {
  return cache_control == null ? {} : { cache: cache_control.ttl ?? '5m' }
}
