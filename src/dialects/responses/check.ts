/** Checks of parts of a Responses body that name the place of the fault within the whole of it. */
import type { Static, TSchema } from '@sinclair/typebox'
import { GatewayError, withParam } from '../../core/validation/errors.ts'
import { checker, invalidField } from '../../core/validation/validate.ts'

export type Fields = Readonly<Record<string, unknown>>

/** The check of an object at a place (`input.3`). Throws `invalid_request` with the whole path of the first fault. */
export function checkerAt<S extends TSchema>(schema: S): (value: unknown, place: string) => Static<S> {
  const check = checker(schema)
  return (value, place) => {
    if (!isFields(value)) throw invalidField(place, 'must be an object')
    try {
      return check(value)
    } catch (thrown) {
      if (!(thrown instanceof GatewayError)) throw thrown
      throw thrown.param === null ? invalidField(place, 'is not valid') : withParam(thrown, `${place}.${thrown.param}`)
    }
  }
}

/** True for a JSON object. */
export function isFields(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** The text, null where it is none. */
export function textOrNull(value: unknown): string | null {
  return typeof value === 'string' ? value : null
}
