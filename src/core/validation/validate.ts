/**
 * Validation of untrusted input: JSON text, bodies, headers. Each error names one field and what it must be, and never
 * repeats the input. Compiled checks accept; only a rejected value is walked, up to its first fault, because TypeBox's
 * error list grows with the body and is built in full for every union.
 */
import {
  Kind,
  type ObjectOptions,
  type Static,
  type TProperties,
  type TSchema,
  type TUnsafe,
  Type,
} from '@sinclair/typebox'
import { TypeCompiler } from '@sinclair/typebox/compiler'
import { Value } from '@sinclair/typebox/value'
import { remembered } from '../text/recent-map.ts'
import { type ErrorCode, GatewayError } from './errors.ts'
import { countMembers, findDuplicateKey, parseExactJson, scanJson } from './untrusted-json.ts'

const maximumKeyCharacters = 64

/** The part of TypeBox's vocabulary that the schemas use. This file reads `description` and `unmatched`. */
export type SchemaNode = {
  readonly [Kind]: string
  /** Describes the required value if the schema would read badly (a pattern). */
  readonly description?: string
  /** Error code for a well-formed value outside the allowed set. */
  readonly unmatched?: ErrorCode
  readonly const?: unknown
  readonly anyOf?: readonly SchemaNode[]
  readonly items?: SchemaNode
  readonly properties?: Readonly<Record<string, SchemaNode>>
  readonly patternProperties?: Readonly<Record<string, SchemaNode>>
  readonly required?: readonly string[]
  readonly additionalProperties?: boolean | SchemaNode
  readonly [bound: `${'min' | 'max'}${string}`]: number | undefined
  readonly pattern?: string
}

/** `text` is only built for the reported fault, since a union tries every member. */
type Fault = { readonly path: readonly string[]; readonly text: () => string; readonly code: ErrorCode }

/**
 * Returns an untrusted value with its type if it fits `schema`, which is compiled on first use. Throws a `GatewayError`
 * `invalid_request` (or the schema's `unmatched` code) whose `param` is the dotted path of the first fault:
 * `messages.0.content.1.image_url.url`.
 */
export function validate<S extends TSchema>(schema: S, value: unknown): Static<S> {
  const shape = schema as unknown as SchemaNode
  if (getCheck(shape)(value)) return value as Static<S>
  throw refusal(findFault(shape, value) ?? fault(() => 'is not valid'))
}

/** Returns a `GatewayError` about one field: `param` in backquotes, then `text` (`must be …`). */
export function invalidField(param: string, text: string, code: ErrorCode = 'invalid_request'): GatewayError {
  return new GatewayError(code, `\`${param}\` ${text}.`, { param })
}

/** A tool schema of ten levels is 25 deep, slightly more with arrays. */
const maximumDepth = 64
/**
 * Above 10,000 messages and 1,024 tools with their schemas. This many values are parsed and checked fast enough not to
 * delay other requests.
 */
const maximumValues = 262_144

const outgrownBy = {
  depth: () => `nests deeper than ${maximumDepth} levels: flatten it`,
  values: (most: number) => `holds more than ${most} values: make it shorter`,
}

/**
 * Returns the object in a JSON body. Throws `invalid_json` if it is not JSON, nested too deeply or has more than `values` values,
 * and `invalid_request` if it is not an object or one of its objects has a key twice.
 */
export function parseJson(text: string, values = maximumValues): Readonly<Record<string, unknown>> {
  const { exceeded, members } = scanJson(text, maximumDepth, values)
  if (exceeded !== null)
    throw new GatewayError('invalid_json', `The body ${outgrownBy[exceeded](values)} and send it again.`)
  const value = parseJsonText(text)
  if (!isObject(value)) throw new GatewayError('invalid_request', 'The body must be a JSON object: `{ … }`.')
  if (countMembers(value) !== members)
    throw invalidField((findDuplicateKey(text) ?? '').slice(0, 64).toWellFormed(), 'appears twice. Send it once')
  return value
}

/** Returns a header's value if it is one of `allowed`, case-insensitively; null if absent. Throws `invalid_request`. */
export function headerChoice<T extends string>(headers: Headers, name: string, allowed: readonly T[]): T | null {
  const sent = headers.get(name)
  if (sent === null) return null
  const value = sent.trim().toLowerCase()
  const choice = allowed.find(item => item === value)
  if (choice === undefined) throw invalidField(name, `must be ${listed(allowed.map(quoted))}, or not be sent`)
  return choice
}

/** Returns a header of `true` or `false` (also `1` and `0`); null if absent. Throws `invalid_request`. */
export function headerFlag(headers: Headers, name: string): boolean | null {
  const choice = headerChoice(headers, name, ['true', 'false', '1', '0'])
  return choice === null ? null : choice === 'true' || choice === '1'
}

/** Returns a header's value as a decimal number within bounds; null if absent. Throws `invalid_request`. */
export function headerNumber(
  headers: Headers,
  name: string,
  { minimum, maximum }: { readonly minimum: number; readonly maximum: number },
): number | null {
  const sent = headers.get(name)?.trim()
  if (sent === undefined) return null
  const value = /^\d{1,9}(?:\.\d{1,9})?$/.test(sent) ? Number(sent) : Number.NaN
  if (value >= minimum && value <= maximum) return value
  throw invalidField(name, `must be a number from ${minimum} to ${maximum}, or not be sent`)
}

function parseJsonText(text: string): unknown {
  try {
    return parseExactJson(text)
  } catch {
    // The engine's own message quotes the input.
    throw new GatewayError('invalid_json', 'The body is not valid JSON: send one JSON object, encoded in UTF-8.')
  }
}

function refusal({ path, text, code }: Fault): GatewayError {
  const param = path.join('.')
  return param === '' ? new GatewayError(code, `The body ${text()}.`) : invalidField(param, text(), code)
}

/** Returns the first fault of a value in schema order; null = none. */
function findFault(shape: SchemaNode, value: unknown): Fault | null {
  switch (shape[Kind]) {
    case 'Object':
      return isObject(value) ? objectFault(shape, value) : wrong(shape)
    case 'Record':
      return isObject(value) ? recordFault(shape, value) : wrong(shape)
    case 'Array':
      return Array.isArray(value) ? arrayFault(shape, value) : wrong(shape)
    case 'Union':
      return unionFault(shape, value)
    case 'Literal':
      if (value === shape.const) return null
      return wrong(shape, typeof value === typeof shape.const ? shape.unmatched : undefined)
    case 'String':
      if (typeof value === 'string' && fitsString(shape, value)) return null
      return wrong(shape, typeof value === 'string' ? shape.unmatched : undefined)
    case 'Number':
    case 'Integer':
      return typeof value === 'number' && fitsNumber(shape, value) ? null : wrong(shape)
    case 'Boolean':
      return typeof value === 'boolean' ? null : wrong(shape)
    case 'Null':
      return value === null ? null : wrong(shape, shape.unmatched)
    default:
      return null
  }
}

function objectFault(shape: SchemaNode, value: Readonly<Record<string, unknown>>): Fault | null {
  const properties = shape.properties ?? {}
  const required = shape.required ?? []
  // The object's kind is checked before the fields that the kind requires.
  const tag = required.find(key => Object.hasOwn(value, key) && literals(properties[key]).length > 0)
  const mistaken = tag === undefined ? null : propertyFault(properties[tag], value, tag)
  if (mistaken !== null) return mistaken
  const lacking = required.find(key => !Object.hasOwn(value, key))
  if (lacking !== undefined) return under(lacking, missing(properties[lacking]))
  if (shape.additionalProperties === false) {
    const unknown = Object.keys(value).find(key => !Object.hasOwn(properties, key))
    if (unknown !== undefined)
      return under(
        unknown,
        fault(() => 'is not a known field here: remove it or correct its name'),
      )
  }
  for (const [key, property] of Object.entries(properties)) {
    const found = propertyFault(property, value, key)
    if (found !== null) return found
  }
  return null
}

function propertyFault(
  shape: SchemaNode | undefined,
  value: Readonly<Record<string, unknown>>,
  key: string,
): Fault | null {
  const found = shape !== undefined && Object.hasOwn(value, key) ? findFault(shape, value[key]) : null
  return found && under(key, found)
}

function recordFault(shape: SchemaNode, value: Readonly<Record<string, unknown>>): Fault | null {
  const entries = Object.entries(value)
  if (!within(entries.length, shape.minProperties, shape.maxProperties)) return wrong(shape)
  for (const [pattern, entry] of Object.entries(shape.patternProperties ?? {})) {
    const names = new RegExp(pattern)
    for (const [key, item] of entries) {
      const taken = names.test(key)
      if (!taken && shape.additionalProperties === false) {
        return under(
          key,
          fault(() => 'has a name that is not taken here: correct it'),
        )
      }
      const found = taken ? findFault(entry, item) : null
      if (found !== null) return under(key, found)
    }
  }
  return null
}

function arrayFault(shape: SchemaNode, value: readonly unknown[]): Fault | null {
  if (!within(value.length, shape.minItems, shape.maxItems)) return wrong(shape)
  const { items } = shape
  if (items === undefined) return null
  const fits = getCheck(items)
  const index = value.findIndex(item => !fits(item))
  return index === -1 ? null : under(String(index), findFault(items, value[index]) ?? wrong(items))
}

/** Returns the compiled check of a schema. The items of an array have one too, since all before the invalid one pass it. */
const getCheck = remembered((shape: SchemaNode) => {
  const compiled = TypeCompiler.Compile(shape as unknown as TSchema)
  return (value: unknown) => compiled.Check(value)
})

/**
 * Returns the fault of the intended union member: the one that the value's `type` or `role` names, else the one of the
 * value's kind.
 */
function unionFault(shape: SchemaNode, value: unknown): Fault | null {
  const meant = getMembers(shape).filter(member => getKind(member) === kindOfValue(value))
  if (!isObject(value) || meant.length < 2) {
    const faults = meant.map(member => findFault(member, value))
    if (faults.includes(null)) return null
    return (faults.length === 1 && faults[0]) || wrong(shape, faults.length > 1 ? findUnmatched(shape) : undefined)
  }
  const tag = findTag(meant)
  if (tag === null) return meant.some(member => findFault(member, value) === null) ? null : wrong(shape)
  const named = meant.find(member => literals(member.properties?.[tag]).some(literal => literal.const === value[tag]))
  if (named !== undefined) return findFault(named, value)
  const taken: SchemaNode = { [Kind]: 'Union', anyOf: meant.flatMap(member => literals(member.properties?.[tag])) }
  if (!Object.hasOwn(value, tag)) return under(tag, missing(taken))
  return under(tag, wrong(taken, typeof value[tag] === 'string' ? findUnmatched(taken) : undefined))
}

/** Flattens nested unions (`nullable(oneOf(…))`). */
function getMembers(shape: SchemaNode): readonly SchemaNode[] {
  return (shape.anyOf ?? []).flatMap(member => (member[Kind] === 'Union' ? getMembers(member) : [member]))
}

function findUnmatched(shape: SchemaNode): ErrorCode | undefined {
  return shape.unmatched ?? shape.anyOf?.find(member => member.unmatched !== undefined)?.unmatched
}

/** Returns the field that distinguishes a union's object members: a literal in each. */
function findTag(members: readonly SchemaNode[]): string | null {
  const keys = Object.keys(members[0]?.properties ?? {})
  return keys.find(key => members.every(member => literals(member.properties?.[key]).length > 0)) ?? null
}

function literals(shape: SchemaNode | undefined): readonly SchemaNode[] {
  const members = shape?.[Kind] === 'Union' ? getMembers(shape) : shape === undefined ? [] : [shape]
  return members.every(member => member[Kind] === 'Literal') ? members : []
}

function getKind(shape: SchemaNode): string {
  switch (shape[Kind]) {
    case 'Literal':
      return typeof shape.const
    case 'Integer':
      return 'number'
    case 'Record':
      return 'object'
    default:
      return shape[Kind].toLowerCase()
  }
}

function kindOfValue(value: unknown): string {
  if (value === null) return 'null'
  return Array.isArray(value) ? 'array' : typeof value
}

function fitsString(shape: SchemaNode, value: string): boolean {
  if (!within(value.length, shape.minLength, shape.maxLength)) return false
  return shape.pattern === undefined || new RegExp(shape.pattern).test(value)
}

function fitsNumber(shape: SchemaNode, value: number): boolean {
  const fits = shape[Kind] === 'Integer' ? Number.isInteger(value) : Number.isFinite(value)
  return fits && within(value, shape.minimum, shape.maximum)
}

function within(value: number, minimum: number | undefined, maximum: number | undefined): boolean {
  return value >= (minimum ?? -Infinity) && value <= (maximum ?? Infinity)
}

function missing(shape: SchemaNode | undefined): Fault {
  return fault(() => `is missing: it must be ${shape === undefined ? 'sent' : described(shape)}`)
}

function wrong(shape: SchemaNode, code?: ErrorCode): Fault {
  return fault(() => `must be ${described(shape)}`, code)
}

function fault(text: () => string, code: ErrorCode = 'invalid_request'): Fault {
  return { path: [], text, code }
}

function under(key: string, found: Fault): Fault {
  return { ...found, path: [shortened(key), ...found.path] }
}

/** Returns a description of accepted values that completes "it must be …". */
export function describeExpected(schema: TSchema): string {
  return described(schema as unknown as SchemaNode)
}

/** `an integer from 1 to 128`, `"auto", "none" or an object`. */
function described(shape: SchemaNode): string {
  if (shape.description !== undefined) return shape.description
  switch (shape[Kind]) {
    case 'Union':
      return listed([
        ...new Set(
          getMembers(shape)
            .filter(member => member[Kind] !== 'Null')
            .map(described),
        ),
      ])
    case 'Literal':
      return quoted(shape.const)
    case 'String':
      return `a string${ranged(shape.minLength, shape.maxLength, 'of', ' character')}`
    case 'Array':
      return `an array${ranged(shape.minItems, shape.maxItems, 'of', ' item')}`
    case 'Number':
      return `a number${ranged(shape.minimum, shape.maximum, 'from', '')}`
    case 'Integer':
      return `an integer${ranged(shape.minimum, shape.maximum, 'from', '')}`
    case 'Boolean':
      return 'true or false'
    case 'Null':
      return 'null'
    case 'Record':
      return `an object${ranged(shape.minProperties, shape.maxProperties, 'of', ' field')}`
    default:
      return 'an object'
  }
}

function ranged(minimum: number | undefined, maximum: number | undefined, lead: string, unit: string): string {
  const counted = (count: number) => `${count}${unit === '' || count === 1 ? unit : `${unit}s`}`
  if (minimum !== undefined && maximum !== undefined) return ` ${lead} ${minimum} to ${counted(maximum)}`
  if (maximum !== undefined) return ` of at most ${counted(maximum)}`
  return minimum === undefined ? '' : ` of at least ${counted(minimum)}`
}

function listed(words: readonly string[]): string {
  return words.length < 2 ? words.join('') : `${words.slice(0, -1).join(', ')} or ${words.at(-1)}`
}

function quoted(value: unknown): string {
  return JSON.stringify(value)
}

/** Returns a client's key for the message, shortened and well-formed. */
function shortened(key: string): string {
  return key.slice(0, maximumKeyCharacters).toWellFormed()
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** Returns the schema of an object without other fields. */
export function strictObject<P extends TProperties>(properties: P, options: ObjectOptions = {}) {
  return Type.Object(properties, { additionalProperties: false, ...options })
}

/** Returns the schema of an optional field for which null means absent. */
export function nullable<S extends TSchema>(schema: S) {
  return Type.Optional(Type.Union([schema, Type.Null()]))
}

/** Returns the schema of a closed set of strings. `unmatched` is the error code for other strings. */
export function oneOf<const T extends string>(
  values: readonly T[],
  unmatched: ErrorCode = 'invalid_request',
): TUnsafe<T> {
  const literal = values.map(value => Type.Literal(value, { unmatched }))
  return Type.Union(literal, { unmatched }) as unknown as TUnsafe<T>
}

/** Returns the content of a data file of the gateway with its type. Throws if it does not fit. */
export function checkedData<S extends TSchema>(name: string, schema: S, value: unknown): Static<S> {
  if (Value.Check(schema, value)) return value
  const problem = Value.Errors(schema, value).First()
  throw new Error(`${name}: ${problem?.path}: ${problem?.message}`)
}
