/** Checks for parts of a Responses body. Their errors have the full path of the field at fault. */
import type { Static, TSchema } from '@sinclair/typebox'
import { GatewayError, withParam } from '../core/validation/errors.ts'
import { invalidField, validate } from '../core/validation/validate.ts'

export type Fields = Readonly<Record<string, unknown>>

/** Returns a check for an object at a path (`input.3`). It throws `invalid_request` with the full path of the first fault. */
export function checkerAt<S extends TSchema>(schema: S): (value: unknown, place: string) => Static<S> {
  return (value, place) => {
    if (!isFields(value)) throw invalidField(place, 'must be an object')
    try {
      return validate(schema, value)
    } catch (thrown) {
      if (!(thrown instanceof GatewayError)) throw thrown
      throw thrown.param === null ? invalidField(place, 'is not valid') : withParam(thrown, `${place}.${thrown.param}`)
    }
  }
}

/** Returns whether a value is a JSON object. */
export function isFields(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** Returns the value if it is a string, else null. */
export function textOrNull(value: unknown): string | null {
  return typeof value === 'string' ? value : null
}
