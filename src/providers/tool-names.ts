/**
 * Names of tools on an upstream's wire. Clients may use names that an upstream rejects, which would fail the whole request:
 * longer ones (MCP), or those of a model that invents a tool. Declarations, choice and history get the same name, and calls
 * return under the client's.
 */
import type { ChatRequest, Message } from '../core/chat/chat.ts'
import { shortToolName } from '../core/chat/tool-definitions.ts'
import type { Provider } from './provider.ts'

/**
 * Creates a source of unique names: the wanted one if unused, else the first unused `alternative`, called with
 * ascending numbers.
 */
export function uniqueNames(): (wanted: string | null, alternative: (count: number) => string) => string {
  const taken = new Set<string>()
  return (wanted, alternative) => {
    let name = wanted ?? alternative(taken.size)
    for (let count = taken.size; taken.has(name); count += 1) name = alternative(count)
    taken.add(name)
    return name
  }
}

/** OpenAI's rule, which compatible servers share. */
const usualRule: NonNullable<Provider['toolNames']> = { accepted: /^[A-Za-z0-9_-]{1,64}$/, longest: 64 }

type WireToolNames = {
  /** The request with the names of the wire. */
  readonly request: ChatRequest
  /** The client's names, by those of the wire. */
  readonly own: ReadonlyMap<string, string>
}

/** Returns the request for the upstream; null = it accepts every name. */
export function wireToolNames(request: ChatRequest, provider: Pick<Provider, 'toolNames'>): WireToolNames | null {
  const { accepted, longest } = provider.toolNames ?? usualRule
  const names = namesIn(request)
  const refused = names.filter(name => !accepted.test(name))
  if (refused.length === 0) return null
  const unique = uniqueNames()
  for (const name of names) if (accepted.test(name)) unique(name, () => name)
  const wire = new Map<string, string>()
  for (const name of refused) {
    // A character less than allowed, since Google requires a letter or `_` at the start.
    const spelled = (text: string) => {
      const short = shortToolName(text, longest - 1)
      return accepted.test(short) ? short : `_${short}`
    }
    wire.set(
      name,
      unique(spelled(name), count => spelled(`${count}_${name}`)),
    )
  }
  const own = new Map([...wire].map(([client, short]) => [short, client]))
  return { request: renamed(request, name => wire.get(name) ?? name), own }
}

/** Returns every name once. */
function namesIn({ tools, messages }: ChatRequest): readonly string[] {
  const names = new Set(tools.map(({ name }) => name))
  for (const message of messages)
    if (message.role === 'assistant') for (const { name } of message.toolCalls) names.add(name)
  return [...names]
}

function renamed(request: ChatRequest, wireName: (name: string) => string): ChatRequest {
  const named = <T extends { readonly name: string }>(item: T): T => ({ ...item, name: wireName(item.name) })
  const { toolChoice } = request
  return {
    ...request,
    tools: request.tools.map(named),
    toolChoice: typeof toolChoice === 'object' && toolChoice !== null ? named(toolChoice) : toolChoice,
    messages: request.messages.map(
      (message): Message =>
        message.role === 'assistant' ? { ...message, toolCalls: message.toolCalls.map(named) } : message,
    ),
  }
}

/**
 * Arguments of one call, which upstreams send as a whole, in parts, empty first, or repeated at the end. Clients join the
 * parts that they receive, so empty ones wait until it is certain that no others follow. A call with other arguments than
 * the upstream sent would run: then the response fails.
 */
export class CallArguments {
  private readonly scan = new Scan()
  /** Text that waits: empty arguments before the first others, or text behind a complete object. */
  private held = ''
  /** Arguments that were passed on. */
  private sent = ''

  /** Adds a part of the text. Returns what can be passed on now; '' = nothing. */
  add(piece: string): string {
    if (this.sent === '') {
      const text = (this.held + piece).replace(emptyBeforeOthers, '')
      const mayBeEmpty = text.length <= longestHeld && beginningOfEmpty.test(text)
      this.held = mayBeEmpty ? text : ''
      return mayBeEmpty ? '' : this.pass(text)
    }
    if (!this.scan.isWhole() || (this.held === '' && piece.trim() === '')) return this.pass(piece)
    this.held += piece
    return ''
  }

  /**
   * Ends the arguments. Returns the text that waited, `{}` for a call without arguments; null if a second object follows the
   * first. `isCut` = the upstream reports an incomplete response: arguments that never arrived stay away.
   */
  end(isCut: boolean): string | null {
    const text = this.held
    this.held = ''
    const rest = text.trim()
    if (this.sent !== '') {
      if (rest === '' || empty.test(rest) || rest === this.sent.trim()) return ''
      if (rest.startsWith('{')) return null
      this.sent += text
      return text
    }
    if (rest !== '' && !empty.test(rest)) return this.pass(text)
    return isCut && !rest.startsWith('{') ? '' : this.pass('{}')
  }

  /** Returns true if the text so far cannot be complete. */
  isUnfinished(): boolean {
    return this.scan.isUnfinished()
  }

  /** Passes on a text up to the end of the object. The rest waits. */
  private pass(piece: string): string {
    const end = this.scan.add(piece)
    const text = piece.slice(0, end)
    if (piece.slice(end).trim() !== '') this.held = piece.slice(end)
    this.sent += text
    return text
  }
}

/** Empty arguments, as upstreams write them before they know the others, or without any. */
const empty = /^(?:(?:\{\s*\}|null)\s*)+$/
const emptyBeforeOthers = /^\s*(?:(?:\{\s*\}|null)\s*)*(?=\{)/
const beginningOfEmpty = /^\s*(?:\{\s*(?:\}\s*)?|n(?:u(?:l(?:l\s*)?)?)?)?$/
/** Maximum length of empty arguments with their white space. */
const longestHeld = 64

/** Returns true for arguments without a member. */
export function isEmptyArguments(text: string): boolean {
  return text.length <= longestHeld && empty.test(text.trim())
}

/** Returns arguments as text that arrive as text or as an object; '' = none. */
export function argumentsText(value: unknown): string {
  if (typeof value === 'string') return value
  if (value === undefined || value === null || (Array.isArray(value) && value.length === 0)) return ''
  return JSON.stringify(value)
}

/**
 * Distinguishes truncated tool calls from complete ones by their arguments: text that ends inside a string or an open
 * bracket lacks its end, and text that ends like an object without beginning like one lacks its beginning. Otherwise
 * invalid text is the model's own mistake and passed to clients unchanged.
 */
class Scan {
  private depth = 0
  private inString = false
  private isEscaped = false
  private first = 0
  private last = 0

  /** Adds a part of the text. Returns the position after the end of the object, or the length of the part. */
  add(piece: string): number {
    for (let at = 0; at < piece.length; at += 1) {
      const unit = piece.charCodeAt(at)
      if (unit > space) {
        this.last = unit
        if (this.first === 0) this.first = unit
      }
      if (this.isEscaped) this.isEscaped = false
      else if (this.inString) {
        if (unit === quote) this.inString = false
        else if (unit === backslash) this.isEscaped = true
      } else if (unit === quote) this.inString = true
      else if (unit === openBrace || unit === openBracket) this.depth += 1
      // A closing bracket without an opening one does not cancel a later one, so parts in the wrong order count as
      // unfinished.
      else if (unit === closeBrace || unit === closeBracket) {
        this.depth = Math.max(0, this.depth - 1)
        if (this.isWhole()) return at + 1
      }
    }
    return piece.length
  }

  isUnfinished(): boolean {
    return this.inString || this.depth > 0 || (this.last === closeBrace && this.first !== openBrace)
  }

  /** Returns true after the end of an object. */
  isWhole(): boolean {
    return this.first === openBrace && this.depth === 0
  }
}

const space = 0x20
const quote = 0x22
const backslash = 0x5c
const openBrace = 0x7b
const closeBrace = 0x7d
const openBracket = 0x5b
const closeBracket = 0x5d
