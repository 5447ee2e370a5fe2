/**
 * Free-text tools (`custom`) as functions with one text, which every provider supports. Chat Completions and Responses declare them
 * in different forms.
 */
import { Type } from '@sinclair/typebox'
import type { Tool } from '../core/chat/chat.ts'
import { bodyText, calledName, callId, functionName } from '../core/request/part-schemas.ts'
import { parseUntrustedJson } from '../core/validation/untrusted-json.ts'
import { nullable, oneOf } from '../core/validation/validate.ts'
import { checkerAt, type Fields, isFields, open } from './foreign-objects.ts'

/**
 * Extracts the text of `{"input":"…"}` while its JSON arrives. Models write the input of a free-text tool in this form, and clients
 * show long patches as they stream.
 */

const opening = /^\s*\{\s*"input"\s*:\s*"/
/** Maximum characters of an opening, with the white space that models write. */
const longestOpening = 64

const escapes: Readonly<Record<string, string>> = { n: '\n', t: '\t', r: '\r', b: '\b', f: '\f' }

export class CustomInput {
  /** JSON received so far. */
  private json = ''
  /** Next position to read; -1 = the opening is incomplete, -2 = other JSON, which `end` parses. */
  private at = -1
  private isClosed = false
  /** First half of a surrogate pair whose second half is missing. */
  private half = ''
  private text = ''

  /** Adds a delta of the JSON and returns the text that it contains. */
  add(delta: string): string {
    this.json += delta
    if (this.at === -1) {
      const found = opening.exec(this.json)
      if (found !== null) this.at = found[0].length
      else if (this.json.length > longestOpening) this.at = -2
    }
    if (this.at < 0 || this.isClosed) return ''
    const added = this.decoded()
    this.text += added
    return added
  }

  /** Returns whether the JSON has arrived whole. */
  isComplete(): boolean {
    return isFields(parseUntrustedJson(this.json))
  }

  /** Returns the complete text and the part that `add` has not returned. */
  end(): { readonly whole: string; readonly rest: string } {
    const whole = wholeInput(this.json)
    if (this.isClosed || !whole.startsWith(this.text)) return { whole: this.text, rest: '' }
    return { whole, rest: whole.slice(this.text.length) }
  }

  private decoded(): string {
    const { json } = this
    let out = ''
    while (this.at < json.length) {
      const next = json.charCodeAt(this.at)
      if (next === quote) {
        this.isClosed = true
        break
      }
      if (next !== backslash) {
        const end = plainEnd(json, this.at)
        out += json.slice(this.at, end)
        this.at = end
        continue
      }
      const kind = json[this.at + 1]
      const length = kind === 'u' ? 6 : 2
      if (kind === undefined || this.at + length > json.length) break
      out +=
        kind === 'u'
          ? String.fromCharCode(Number.parseInt(json.slice(this.at + 2, this.at + 6), 16))
          : (escapes[kind] ?? kind)
      this.at += length
    }
    const joined = this.half + out
    const last = joined.charCodeAt(joined.length - 1)
    const isCut = !this.isClosed && last >= 0xd800 && last < 0xdc00
    this.half = isCut ? joined.slice(-1) : ''
    return isCut ? joined.slice(0, -1) : joined
  }
}

const quote = 34
const backslash = 92

function plainEnd(json: string, from: number): number {
  let end = from
  while (end < json.length && json.charCodeAt(end) !== quote && json.charCodeAt(end) !== backslash) end++
  return end
}

/** Returns the input text; for other arguments their only string, or else the JSON. */
function wholeInput(json: string): string {
  const value = parseUntrustedJson(json)
  if (typeof value === 'string') return value
  if (!isFields(value)) return json
  if (typeof value.input === 'string') return value.input
  const texts = Object.values(value)
  const [only] = texts
  return texts.length === 1 && typeof only === 'string' ? only : json
}

/** `input` is required: models call a function without required fields with `{}`. */
export const customParameters = {
  type: 'object',
  properties: { input: { type: 'string', description: 'The whole input of the tool, as plain text.' } },
  required: ['input'],
  additionalProperties: false,
} satisfies Tool['parameters']

/** Returns the arguments of a call with this input. */
export function customArguments(input: string): string {
  return JSON.stringify({ input })
}

/** Returns what the description says of the tool's grammar; null = it has none. */
export function grammarText(grammar: Fields | null): string | null {
  if (typeof grammar?.definition !== 'string') return null
  const syntax = grammar.syntax === 'regex' ? 'regular expression' : 'Lark grammar'
  return `\`input\` must match this ${syntax}:\n${grammar.definition}`
}

/** Joins the parts of a description; null = all are empty. */
export function joinedTexts(...texts: readonly (string | null | undefined)[]): string | null {
  return texts.filter(text => text != null && text !== '').join('\n\n') || null
}

const named = Type.Object({ name: functionName }, open)
const grammar = Type.Object({ syntax: oneOf(['lark', 'regex']), definition: bodyText }, open)
const format = Type.Object({ type: oneOf(['text', 'grammar']), grammar: nullable(grammar) }, open)
const custom = Type.Object({ name: functionName, description: nullable(bodyText), format: nullable(format) }, open)
const checkTool = checkerAt(Type.Object({ custom }, open))
const checkChoice = checkerAt(Type.Object({ custom: named }, open))
const checkCall = checkerAt(
  Type.Object({ id: callId, custom: Type.Object({ name: calledName, input: bodyText }, open) }, open),
)

const isCustom = (value: unknown): value is Fields => isFields(value) && value.type === 'custom'

/**
 * Returns a Chat Completions body with functions instead of its free-text tools, and their names. Throws `invalid_request` for an
 * invalid one; everything else is checked later.
 */
export function withoutCustomTools(body: unknown): { readonly body: unknown; readonly names: ReadonlySet<string> } {
  if (!isFields(body)) return { body, names: noNames }
  const names = new Set<string>()
  const tools = mapped(body.tools, isCustom, (tool, at) => {
    const { name, description, format } = checkTool(tool, `tools.${at}`).custom
    names.add(name)
    const text = joinedTexts(description, grammarText(format?.grammar ?? null))
    const { custom: _, ...others } = tool
    return { ...others, type: 'function', function: { name, description: text, parameters: customParameters } }
  })
  const messages = mapped(body.messages, isFields, (message, index) => {
    const calls = mapped(message.tool_calls, isCustom, (call, at) => {
      const { id, custom: called } = checkCall(call, `messages.${index}.tool_calls.${at}`)
      const { custom: _, ...others } = call
      const asFunction = { name: called.name, arguments: customArguments(called.input) }
      return { ...others, id, type: 'function', function: asFunction }
    })
    return calls === message.tool_calls ? message : { ...message, tool_calls: calls }
  })
  const tool_choice = chosen(body.tool_choice)
  if (tools === body.tools && messages === body.messages && tool_choice === body.tool_choice)
    return { body, names: noNames }
  return { body: { ...body, tools, messages, tool_choice }, names }
}

const noNames: ReadonlySet<string> = new Set()

function chosen(choice: unknown): unknown {
  const asFunction = (item: Fields, place: string) => ({
    type: 'function',
    function: { name: checkChoice(item, place).custom.name },
  })
  if (isCustom(choice)) return asFunction(choice, 'tool_choice')
  const allowed = isFields(choice) ? choice.allowed_tools : null
  if (!isFields(choice) || !isFields(allowed)) return choice
  const tools = mapped(allowed.tools, isCustom, (tool, at) => asFunction(tool, `tool_choice.allowed_tools.tools.${at}`))
  return tools === allowed.tools ? choice : { ...choice, allowed_tools: { ...allowed, tools } }
}

/** Returns a list with other values for those that `is` accepts; the same list if none changes. */
function mapped(list: unknown, is: (value: unknown) => value is Fields, map: (value: Fields, at: number) => unknown) {
  if (!Array.isArray(list) || !list.some(is)) return list
  const changed: readonly unknown[] = list.map((value: unknown, at) => (is(value) ? map(value, at) : value))
  return changed.every((value, at) => value === list[at]) ? list : changed
}
