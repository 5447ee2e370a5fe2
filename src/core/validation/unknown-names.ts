/** Finds fields that a schema accepts without knowing them. Each is refused, or named to the client: none is lost silently. */
import { Kind, type TSchema } from '@sinclair/typebox'
import type { SchemaNode } from './validate.ts'

/**
 * Returns the names of members that no object of the schema lists, without positions (`contents.parts.videoMetadata`). The
 * value fits the schema. In objects without listed members the client chooses all names; a member that is null is absent.
 */
export function unknownNames(schema: TSchema, value: unknown): ReadonlySet<string> {
  const names = new Set<string>()
  collect(schema as unknown as SchemaNode, value, '', names)
  return names
}

function collect(shape: SchemaNode, value: unknown, place: string, names: Set<string>): void {
  if (typeof value !== 'object' || value === null) return
  const kind = Array.isArray(value) ? 'Array' : 'Object'
  for (const item of shape.anyOf ?? []) if (item[Kind] === kind) collect(item, value, place, names)
  if (shape[Kind] !== kind) return
  if (Array.isArray(value)) {
    for (const item of value) if (shape.items !== undefined) collect(shape.items, item, place, names)
    return
  }
  const { properties = {} } = shape
  if (Object.keys(properties).length === 0) return
  for (const [name, inner] of Object.entries(value)) {
    if (inner === null) continue
    const known = Object.hasOwn(properties, name) ? properties[name] : undefined
    if (known === undefined) names.add(place + name)
    else collect(known, inner, `${place}${name}.`, names)
  }
}
