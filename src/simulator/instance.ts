/** Creates small values that a JSON schema accepts: arguments of simulated tool calls and simulated JSON output. */
import { exampleOf } from './formats.ts'
import { textMatching } from './pattern-text.ts'
import { namedFirst, numbersFor, textsFor } from './plausible.ts'
import {
  accepts,
  bound,
  canonical,
  isSchema,
  itemAt,
  matchOf,
  namesIn,
  type Schema,
  type Source,
  schemaAt,
  type TypeName,
  typeNames,
  typesOf,
} from './schema-check.ts'
import { merged } from './schema-merge.ts'

/** Deeper than any useful value. */
const maximumDepth = 16
/** Maximum schemas read for one instance: a few that refer to each other expand without bound. */
const maximumSchemas = 10_000
const maximumVariants = 64
const maximumItems = 100
const mostOptional = 8

/** Position in the value: member name, array index, depth, and the references followed. */
type Place = {
  readonly name: string
  readonly nth: number
  readonly depth: number
  readonly references: readonly string[]
}
type Making = { readonly source: Source; readonly prompt: string }

/** No accepted value was found. */
const none = Symbol('none')

/**
 * Returns a deterministic instance, taken from the prompt if possible. Includes optional members if the prompt has a
 * value for them, or if no member is required. Supports what providers support (types, enum, const, bounds, formats,
 * plain patterns, local references, allOf, anyOf, oneOf, not, if); every value is checked against its schema. Recursion
 * ends as early as possible. Returns no instance beyond the limits or if the schema cannot be satisfied.
 */
export function instanceOf(schema: unknown, prompt = ''): unknown {
  const making: Making = { source: { root: schema, left: maximumSchemas, matched: new Set() }, prompt }
  const value = make(schema, making, { name: 'value', nth: 0, depth: 0, references: [] })
  return value === none ? shallowest(schema) : value
}

function make(given: unknown, making: Making, place: Place): unknown {
  if (given === false || place.depth > maximumDepth || --making.source.left <= 0) return none
  if (!isSchema(given)) return freeText(place)
  for (const { schema, references } of variantsOf(given, making, place.references)) {
    for (const candidate of candidatesFor(schema, making, { ...place, references }))
      if (candidate !== none && accepts(given, candidate, making.source)) return candidate
    if (making.source.left <= 0) return none
  }
  return none
}

type Variant = { readonly schema: Schema; readonly references: readonly string[] }

/**
 * Yields the plain schemas that a schema stands for, without references and choices, best first: null only as the last
 * resort, and recursive ones last, so that recursion ends.
 */
function* variantsOf(
  schema: Schema,
  making: Making,
  references: readonly string[],
  /** References followed without a member or item in between: repeating one would never end. */
  chain: readonly string[] = [],
): Generator<Variant> {
  const { $ref, allOf, anyOf, oneOf, if: condition, ...own } = schema
  let variants: Variant[] = [{ schema: own, references }]
  const and = (options: readonly unknown[], followed: readonly string[] = chain) => {
    const expanded = options.flatMap(option =>
      --making.source.left <= 0 ? [] : [...variantsOf(asSchema(option), making, references, followed)],
    )
    variants = variants.flatMap(one => expanded.map(other => both(one, other))).slice(0, maximumVariants)
  }
  if (typeof $ref === 'string') {
    if (chain.includes($ref)) return
    and([schemaAt($ref, making.source.root)], [...chain, $ref])
    variants = variants.map(one => ({ ...one, references: [...new Set([...one.references, $ref])] }))
  }
  if (Array.isArray(allOf)) for (const part of allOf.slice(0, maximumVariants)) and([part])
  for (const choice of [anyOf, oneOf]) if (Array.isArray(choice)) and(inOrder(choice, making, references))
  if (condition !== undefined) and([merged(asSchema(condition), asSchema(own.then)), asSchema(own.else), {}])
  yield* variants
}

const both = (one: Variant, other: Variant): Variant => ({
  schema: merged(one.schema, other.schema),
  references: [...new Set([...one.references, ...other.references])],
})

/** Orders options: null after others, and references after non-references, with followed ones last. */
function inOrder(options: readonly unknown[], making: Making, references: readonly string[]): unknown[] {
  const rank = (option: unknown) => {
    const { $ref, type } = asSchema(option)
    if (typeof $ref === 'string') return references.includes($ref) ? 3 : 1
    return type === 'null' || option === false ? 2 : leadsTo(option, references, making) ? 3 : 0
  }
  return options
    .slice(0, maximumVariants)
    .map((option, index) => ({ option, index, rank: rank(option) }))
    .sort((one, other) => one.rank - other.rank || one.index - other.index)
    .map(({ option }) => option)
}

/** Returns true if a required part leads back to a followed reference. */
function leadsTo(option: unknown, references: readonly string[], making: Making): boolean {
  if (references.length === 0) return false
  const { properties, required } = asSchema(option)
  if (!isSchema(properties)) return false
  return namesIn(required).some(name => {
    making.source.left--
    const { $ref } = asSchema(Object.hasOwn(properties, name) ? properties[name] : {})
    return typeof $ref === 'string' && references.includes($ref)
  })
}

function* candidatesFor(schema: Schema, making: Making, place: Place): Generator<unknown> {
  if ('const' in schema) return yield schema.const
  if (Array.isArray(schema.enum)) return yield* rotated(namedFirst(schema.enum, making.prompt), place.nth)
  const types = typesOf(schema)
  const wanted = types.length > 0 ? types : [impliedType(schema), ...typeNames]
  for (const type of new Set(wanted)) yield* candidatesOfType(type, schema, making, place)
}

function impliedType(schema: Schema): TypeName {
  if ('properties' in schema || 'required' in schema || 'minProperties' in schema) return 'object'
  if ('items' in schema || 'prefixItems' in schema || 'minItems' in schema || 'contains' in schema) return 'array'
  const isNumber = ['minimum', 'maximum', 'exclusiveMinimum', 'exclusiveMaximum', 'multipleOf'].some(
    name => name in schema,
  )
  return isNumber ? 'number' : 'string'
}

function* candidatesOfType(type: TypeName, schema: Schema, making: Making, place: Place): Generator<unknown> {
  switch (type) {
    case 'object':
      return yield* objectsFor(schema, making, place)
    case 'array':
      return yield* arraysFor(schema, making, place)
    case 'number':
    case 'integer':
      return yield* numbersOf(schema, type === 'integer' ? 1 : 0, making, place)
    case 'boolean':
      return yield* rotated([true, false], place.nth)
    case 'null':
      return yield null
    case 'string':
      return yield* stringsFor(schema, making, place)
  }
}

function* objectsFor(schema: Schema, making: Making, place: Place): Generator<unknown> {
  const properties = isSchema(schema.properties) ? schema.properties : {}
  const required = namesIn(schema.required)
  const least = bound(schema.minProperties) ?? 0
  const of = (name: string) =>
    Object.hasOwn(properties, name) ? properties[name] : (schema.additionalProperties ?? true)
  const member = (name: string) => make(of(name), making, { ...place, name, depth: place.depth + 1 })
  const members = new Map<string, unknown>()
  for (const name of required) {
    const value = member(name)
    if (value === none) return
    members.set(name, value)
  }
  const dependent = isSchema(schema.dependentRequired) ? schema.dependentRequired : {}
  const optional = Object.keys(properties).filter(name => !members.has(name))
  const plain = new Map(members)
  const most = bound(schema.maxProperties) ?? Number.POSITIVE_INFINITY
  for (const name of optional) {
    const isMeant = required.length === 0 ? members.size < mostOptional : textsFor(name, making.prompt).length > 0
    if ((!isMeant && members.size >= least) || members.size >= most) continue
    // Optional members that lead back here are omitted; otherwise recursion would continue to the maximum depth.
    if (members.size >= least && leadsBack(of(name), place.references)) continue
    const value = member(name)
    if (value !== none) members.set(name, value)
    for (const other of namesIn(dependent[name])) if (!members.has(other)) members.set(other, member(other))
  }
  for (let index = 1; members.size < least && index <= maximumItems; index++) {
    const value = member(`member_${index}`)
    if (value !== none) members.set(`member_${index}`, value)
  }
  if (![...members.values()].includes(none)) yield Object.fromEntries(members)
  yield Object.fromEntries(plain)
}

/** Returns true if a schema, its items or its choices refer to a followed reference. */
function leadsBack(schema: unknown, references: readonly string[], depth = 0): boolean {
  if (!isSchema(schema) || depth > 4) return false
  if (typeof schema.$ref === 'string') return references.includes(schema.$ref) || schema.$ref === '#'
  return [schema.items, schema.anyOf, schema.oneOf, schema.allOf]
    .flat()
    .some(part => leadsBack(part, references, depth + 1))
}

function* arraysFor(schema: Schema, making: Making, place: Place): Generator<unknown> {
  const least = Math.max(bound(schema.minItems) ?? 0, 'contains' in schema ? (bound(schema.minContains) ?? 1) : 0)
  const tuple = [schema.prefixItems, schema.items].find(list => Array.isArray(list))
  const usual = Math.max(least, Array.isArray(tuple) ? tuple.length : 1)
  const most = bound(schema.maxItems) ?? maximumItems
  const lengths = [Math.min(usual, most, maximumItems), Math.min(least, maximumItems)]
  // A list whose items lead back here should be empty; otherwise recursion would continue to the maximum depth.
  if (leadsBack(schema.items, place.references)) lengths.reverse()
  for (const length of new Set(lengths)) {
    const items = itemsFor(schema, length, making, place)
    if (items !== null) yield items
  }
}

function itemsFor(schema: Schema, length: number, making: Making, place: Place): unknown[] | null {
  const items: unknown[] = []
  const seen = new Set<string>()
  for (let nth = 0; items.length < length; nth++) {
    const own = itemAt(schema, items.length)
    const isContained = 'contains' in schema && items.length < (bound(schema.minContains) ?? 1)
    const item = make(isContained ? { allOf: [own, schema.contains] } : own, making, {
      ...place,
      nth,
      depth: place.depth + 1,
    })
    if (item === none || nth > 2 * maximumItems) return null
    const text = schema.uniqueItems === true ? canonical(item) : ''
    if (schema.uniqueItems === true && seen.has(text)) continue
    seen.add(text)
    items.push(item)
  }
  return items
}

function* numbersOf(schema: Schema, step: 0 | 1, { prompt }: Making, { name, nth }: Place): Generator<number> {
  const multiple = bound(schema.multipleOf) ?? step
  const fits = (number: number) => step === 0 || Number.isInteger(number)
  if (nth === 0 && name !== 'value') yield* numbersFor(name, prompt).filter(fits)
  const unit = multiple === 0 ? 1 : step === 1 && !Number.isInteger(multiple) ? Math.ceil(multiple) : multiple
  // Bounds are often only those of the type, which would be unreadable.
  yield unit * (nth + 1)
  const low = bound(schema.minimum) ?? bound(schema.exclusiveMinimum)
  const high = bound(schema.maximum) ?? bound(schema.exclusiveMaximum)
  if (low !== null) for (const more of [0, 1]) yield clean((Math.ceil(low / unit) + nth + more) * unit, multiple)
  if (high !== null) for (const less of [0, 1]) yield clean((Math.floor(high / unit) - nth - less) * unit, multiple)
  if (low !== null && high !== null && multiple === 0) yield low + ((high - low) * (nth + 1)) / (nth + 2)
  if (low !== null) yield low
  if (high !== null) yield high
  yield 0
  yield -unit
}

/** Sums of tenths are not exact in binary. */
const clean = (value: number, multiple: number) =>
  multiple === 0 || Number.isInteger(multiple) ? value : Number(value.toPrecision(12))

function* stringsFor(schema: Schema, { prompt, source }: Making, place: Place): Generator<string> {
  const least = Math.min(bound(schema.minLength) ?? 0, 10_000)
  const most = Math.max(0, bound(schema.maxLength) ?? 10_000)
  const { name, nth } = place
  if (typeof schema.pattern === 'string') {
    const text =
      textMatching(schema.pattern.slice(0, 1_000), least + nth, most) ?? textMatching(schema.pattern, least, most)
    if (text === null) return
    source.matched.add(matchOf(schema.pattern, text))
    return yield text
  }
  if (nth === 0) yield* textsFor(name, prompt)
  const example = exampleOf(schema.format, nth)
  if (example !== null) yield example
  const text = [...freeText(place).padEnd(least, '.')].slice(0, most).join('')
  // The index distinguishes items, so it is truncated last.
  const length = Math.max(least, Math.min(most, text.length))
  yield nth === 0 || text.endsWith(` ${nth + 1}`) ? text : [...String(nth + 1), ...text].slice(0, length).join('')
  yield String.fromCharCode(97 + (nth % 26)).repeat(Math.min(Math.max(least, 1), most))
  yield ''
}

const freeText = ({ name, nth }: Place) => `simulated ${name}${nth === 0 ? '' : ` ${nth + 1}`}`

function rotated<Item>(items: readonly Item[], by: number): Item[] {
  const start = items.length === 0 ? 0 : by % items.length
  return [...items.slice(start), ...items.slice(0, start)]
}

function asSchema(value: unknown): Schema {
  return isSchema(value) ? value : value === false ? { not: {} } : {}
}

function shallowest(schema: unknown): unknown {
  const [type = impliedType(asSchema(schema))] = typesOf(asSchema(schema))
  return type === 'object' ? {} : type === 'array' ? [] : type === 'string' ? '' : type === 'null' ? null : 0
}
