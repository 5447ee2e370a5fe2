/**
 * Detects JSON that is requested in the prompt text instead of a parameter, and derives a schema from its description.
 */
import { nameWordsOf } from './plausible.ts'
import { isSchema, type Schema } from './schema-check.ts'

const mostCharacters = 16_000
const mostFields = 32

/** `subject` = the last of the texts without its JSON description. */
type DescribedJson = { readonly schema: Schema; readonly subject: string }

/**
 * Returns the described JSON; null = no text requests JSON. The schema is an object, or an array of objects if
 * requested.
 */
export function jsonDescribed(texts: readonly string[]): DescribedJson | null {
  const asking = texts.map(text => text.slice(0, mostCharacters)).filter(asksForJson)
  if (asking.length === 0) return null
  const text = asking.join('\n')
  const subject = sentencesOf((texts.at(-1) ?? '').slice(0, mostCharacters))
    .filter(sentence => !asks(sentence) && !/[{}]/.test(sentence))
    .join(' ')
  const example = exampleIn(text)
  if (example !== null) return { schema: isSchemaText(example) ? example : schemaLike(example), subject }
  const properties = fieldsIn(text)
  const schema = { type: 'object', properties, required: Object.keys(properties) }
  const isList = /\bJSON (?:array|list)\b|\b(?:array|list) of (?:JSON )?objects\b/i.test(text)
  return { schema: isList ? { type: 'array', minItems: 2, items: schema } : schema, subject }
}

const orders =
  /\b(?:answer|respond|reply|return|output|produce|print|write|give|generate|emit|provide|format|convert|extract|only|just|valid|use|as|send)\b[^.?!\n]{0,100}\bJSON\b|\bJSON\b[^.?!\n]{0,40}\b(?:only|format|output)\b|\bin JSON\b/i
/** Questions about JSON, or about programs that handle it, want a text. */
const questions =
  /^\W*(?:how|what|why|when|which|who|where|explain|describe|compare|is|are|does|do|did|should|tell me (?:how|what|why|about))\b|\b(?:function|script|program|code|class|method|parser|library|endpoint|API)\b[^.?!\n]{0,60}\bJSON\b|\bJSON\b[^.?!\n]{0,30}\b(?:file|parser|library|API|endpoint|schema validation)\b/i

const sentencesOf = (text: string) => text.split(/(?<=[.?!])\s+|\n/)
const asks = (sentence: string) => orders.test(sentence) && !questions.test(sentence)
const asksForJson = (text: string) => sentencesOf(text).some(asks)

/** Returns the first object or array in the text, out of a bounded number of candidates. */
function exampleIn(text: string): unknown {
  for (let at = text.search(/[{[]/), tries = 0; at !== -1 && tries < 8; tries++) {
    const end = closing(text, at)
    if (end === -1) return null
    try {
      const value: unknown = JSON.parse(text.slice(at, end + 1))
      if (isSchema(value) || (Array.isArray(value) && isSchema(value[0]))) return value
    } catch {
      // Types or dots often replace values.
      const names = [...text.slice(at, end).matchAll(/["'“]([\p{L}_$][\p{L}\d_$ -]{0,60})["'”]\s*:/gu)].map(
        ([, name = '']) => name,
      )
      if (names.length > 0) return Object.fromEntries(names.slice(0, mostFields).map(name => [name, '']))
    }
    const next = text.slice(at + 1).search(/[{[]/)
    at = next === -1 ? -1 : at + 1 + next
  }
  return null
}

/** Returns the position of the bracket that closes `start`, ignoring brackets in strings; -1 = none. */
function closing(text: string, start: number): number {
  let depth = 0
  let isQuoted = false
  for (let at = start; at < text.length; at++) {
    const sign = text[at]
    if (isQuoted && sign === '\\') at++
    else if (sign === '"') isQuoted = !isQuoted
    else if (!isQuoted && (sign === '{' || sign === '[')) depth++
    else if (!isQuoted && (sign === '}' || sign === ']') && --depth === 0) return at
  }
  return -1
}

function isSchemaText(value: unknown): value is Schema {
  return (
    isSchema(value) &&
    (isSchema(value.properties) || (typeof value.type === 'string' && 'items' in value) || '$ref' in value)
  )
}

/** Returns a schema of values like this one. */
function schemaLike(value: unknown, name = '', depth = 0): Schema {
  if (depth > 8) return {}
  if (Array.isArray(value)) {
    const [first] = value
    return { type: 'array', items: first === undefined ? typeByName(name) : schemaLike(first, name, depth + 1) }
  }
  if (isSchema(value)) {
    const members = Object.entries(value).slice(0, mostFields)
    const properties = Object.fromEntries(members.map(([key, member]) => [key, schemaLike(member, key, depth + 1)]))
    return { type: 'object', properties, required: members.map(([key]) => key) }
  }
  if (typeof value === 'number') return { type: Number.isInteger(value) ? 'integer' : 'number' }
  if (typeof value === 'boolean') return { type: 'boolean' }
  if (typeof value !== 'string') return typeByName(name)
  const word = value.replace(/[<>[\]"'?.… ]/g, '')
  const options = value.split('|').map(option => option.trim())
  if (options.length > 1 && options.length <= 16 && !types.has(options[0] ?? '')) return { enum: options }
  return types.get(word.toLowerCase()) ?? (word === '' ? typeByName(name) : { type: 'string' })
}

const types: ReadonlyMap<string, Schema> = new Map([
  ['string', { type: 'string' }],
  ['str', { type: 'string' }],
  ['text', { type: 'string' }],
  ['number', { type: 'number' }],
  ['float', { type: 'number' }],
  ['integer', { type: 'integer' }],
  ['int', { type: 'integer' }],
  ['boolean', { type: 'boolean' }],
  ['bool', { type: 'boolean' }],
  ['array', { type: 'array', items: { type: 'string' } }],
  ['list', { type: 'array', items: { type: 'string' } }],
  ['strings', { type: 'array', items: { type: 'string' } }],
  ['object', { type: 'object' }],
])

/** `fields a, b (integer) and "c"`, `keys: a, b`. */
function fieldsIn(text: string): Record<string, Schema> {
  const named =
    /\b(?:fields?|keys?|propert(?:y|ies)|attributes?|members?|columns?)\b\s*(?:named|called|are|is|being|of)?\s*:?\s*([^.;!?\n]{1,400})/i.exec(
      text,
    )?.[1]
  const containing =
    /\bJSON\b[^.;!?\n]{0,60}?\b(?:with|containing|contain|including|having|has)\b\s*(?:the |an? |only |exactly )*([^.;!?\n]{1,400})/i.exec(
      text,
    )?.[1]
  const fields: Record<string, Schema> = {}
  for (const item of (named ?? containing ?? '').split(/,|\band\b|&|\bplus\b/i).slice(0, mostFields)) {
    const read =
      /^\s*(?:an? |the |optional )*["'“‘`]?([\p{L}_$][\p{L}\d_$-]{0,60})["'”’`]?\s*(?:[(:]\s*(?:an? )?([a-z]+)[^)]*\)?|as (?:an? )?([a-z]+)|(\S.*)?)?\s*$/iu.exec(
        item,
      )
    const [, name, inBrackets, asType, rest] = read ?? []
    // Running text follows: the list is over.
    if (name === undefined || (rest !== undefined && rest.split(/\s+/).length > 2)) {
      if (name !== undefined && Object.keys(fields).length > 0) fields[name] = typeByName(name)
      break
    }
    fields[name] = types.get((inBrackets ?? asType ?? '').toLowerCase()) ?? typeByName(name)
  }
  return fields
}

function typeByName(name: string): Schema {
  const words = nameWordsOf(name)
  const last = words.at(-1) ?? ''
  if (['is', 'has', 'can', 'should'].includes(words[0] ?? '')) return { type: 'boolean' }
  if (['id', 'name'].includes(last)) return { type: 'string' }
  if (/^(count|number|age|year|quantity|total|rank|index|size|length|population|stars)$/.test(last))
    return { type: 'integer', minimum: 0 }
  if (
    /^(price|score|rating|confidence|amount|temperature|percentage|probability|weight|height|latitude|longitude)$/.test(
      last,
    )
  )
    return { type: 'number' }
  if (/^(tags|items|keywords|list|names|steps|ingredients|topics|entities|categories|examples|reasons)$/.test(last))
    return { type: 'array', minItems: 2, items: { type: 'string' } }
  return { type: 'string' }
}
