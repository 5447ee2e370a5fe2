/** Applies three layers to a text in process: patterns, classifier, blocked hosts. Linear and synchronous. */
import type { Message, PromptDefinition } from '../../core/chat/chat.ts'
import { jsonTexts, messageNames, messageTexts } from '../../core/chat/request-texts.ts'
import type { Digested } from '../../core/text/keyed-digests.ts'
import { parseUntrustedJson } from '../../core/validation/untrusted-json.ts'
import { getPieces, isLong } from '../code-units.ts'
import { deobfuscatedVariants } from '../disguises/deobfuscate.ts'
import type { HarmClassifier } from '../harm/harm-classifier.ts'
import { findBlockingRule, type TextKind } from '../rules/pattern-rules.ts'
import { getUserText } from '../segments/conversation.ts'
import { getSegments } from '../segments/segments.ts'
import { judgeOutput } from './output-text.ts'
import { secretKindSteps } from './secret-detection.ts'
import { allowed, allowVerdict, blockVerdict, containsBlockedHost, type OutputLayers, type Verdict } from './verdict.ts'

/** The verdict on messages or definitions, and the kinds of the secrets in them. */
type Screening = Verdict & { readonly secrets: readonly string[] }

/** Yields the characters of each reading that was judged; no step reads more than a piece. Returns the verdict. */
export type Steps<Result = Verdict> = Generator<number, Result, void>

/** Moderation in process. */
export type TextModerator = {
  /**
   * Judges a text that is only embedded, by the rules of `data` only: an embedding is not a response, and a corpus is a
   * thousand times as long as a prompt.
   */
  embeddedSteps(text: string): Steps
  /**
   * Judges a conversation and definitions piece by piece: returns the first block, or the highest score. Text that the model
   * reads, such as a tool result, is blocked for instructions in it, not for its topics. Definitions of tools and schemas
   * skip the classifier: it was trained on requests, and "Runs a command" or "Transfers money" look like requests to it.
   */
  screenSteps(messages: readonly (Message | PromptDefinition)[]): Steps<Screening>
  /** The same at once. */
  screenMessages(messages: readonly (Message | PromptDefinition)[]): Screening
}

export type CleanText = { readonly score: number; readonly secrets: readonly string[] }

/** Messages, joined turns and definitions that were found clean. */
export type CleanTexts = {
  /** null = not known. */
  find(message: Digested): CleanText | null
  keep(message: Digested, clean: CleanText): void
}

/** How a text is judged: as a request, as text that a model reads, by the rules of requests, by those of data, or as an output. */
type TextSort = TextKind | 'definition' | 'embedded' | 'output'

/** The layers in process that judge prompts and outputs, and what they found clean. */
type TextLayers = OutputLayers & Pick<HarmClassifier, 'prompt'> & { readonly known: CleanTexts }

/**
 * Creates a text moderator. An assistant message is judged like an output, so that an output that was sent is not
 * blocked when it returns as history.
 */
export function createTextModerator(layers: TextLayers): TextModerator {
  const { rules, hosts, prompt: classify, known } = layers

  const byTopic = (text: string): Verdict => {
    const { category, score } = classify(text)
    return category === null ? allowed(score) : blockVerdict('classifier', category, score)
  }

  const byRules = (text: string, kind: TextKind | 'embedded', score = 0): Verdict => {
    const rule = findBlockingRule(rules, text, kind === 'embedded' ? 'data' : kind)
    if (rule !== null) return blockVerdict('patterns', rule.category, score, rule)
    if (kind === 'embedded' || !containsBlockedHost(hosts, text)) return allowVerdict
    return blockVerdict('urls', 'malicious_url', score)
  }

  /** Judges a request by all layers, of which the rules come first. */
  const byAll = (text: string): Verdict => {
    const topic = byTopic(text)
    const verdict = byRules(text, 'prompt', topic.score)
    return verdict.layer === 'patterns' || (verdict.layer === 'urls' && topic.verdict === 'allow') ? verdict : topic
  }

  /** What a user pastes has no more authority than a tool result: orders to the model in it are not the user's. */
  const ordersInMaterial = (text: string, of: Message | PromptDefinition): Verdict | null => {
    const { parts, material } = getSegments(of, text)
    if (material < leastMaterial) return null
    for (const { kind, from, to } of parts) {
      if (kind !== 'material' || to - from < leastMaterial) continue
      const rule = findBlockingRule(rules, text.slice(from, to), 'data')
      if (rule !== null && ordering.has(rule.category)) return blockVerdict('patterns', rule.category, 0, rule)
    }
    return null
  }

  /** Judges a request of one piece by all layers, and its variants. */
  const judge = (text: string, of: Message | PromptDefinition): Verdict => {
    let verdict = byAll(text)
    if (verdict.verdict === 'block') return verdict
    const pasted = ordersInMaterial(text, of)
    if (pasted !== null) return { ...pasted, score: verdict.score }
    // For a long text, usually code that only looks obfuscated, rules and hosts suffice.
    const longestRead = text.length <= longestReread ? longestReread : 0
    for (const scan of deobfuscatedVariants(text)) {
      const other = scan.length <= longestRead ? byAll(scan) : byRules(scan, 'prompt')
      if (other.verdict === 'block') return other
      verdict = louder(verdict, other)
    }
    return verdict
  }

  /** Yields the verdict on each reading of a text, and its characters. */
  function* verdicts(text: string, sort: Exclude<TextSort, 'prompt'>): Generator<readonly [Verdict, number], void> {
    for (const piece of getPieces(text)) {
      if (sort === 'output') yield [judgeOutput(layers, piece) ?? allowVerdict, piece.length]
      else
        for (const scan of [piece, ...deobfuscatedVariants(piece)])
          yield [byRules(scan, sort === 'definition' ? 'prompt' : sort), scan.length]
    }
  }

  /** Judges a text of `of`, in pieces if it is long. Of a long request the classifier reads a bounded part. */
  function* textSteps(text: string, sort: TextSort, of: Message | PromptDefinition | null = null): Steps {
    let verdict: Verdict = allowVerdict
    if (sort === 'prompt') {
      const isWhole = of !== null && !isLong(text)
      verdict = isWhole ? judge(text, of) : byTopic(text)
      yield isWhole ? text.length : 0
      if (isWhole || verdict.verdict === 'block') return verdict
    }
    for (const [item, characters] of verdicts(text, sort === 'prompt' ? 'definition' : sort)) {
      if (item.verdict === 'block') return sort === 'prompt' ? { ...item, score: verdict.score } : item
      yield characters
    }
    return verdict
  }

  /** Judges one message, without the turns around it, which `joinedTurns` covers, or one definition. */
  function* partSteps(part: Message | PromptDefinition): Steps<Screening> {
    const clean = known.find(part)
    if (clean !== null) return screening(allowVerdict, clean.score, clean.secrets)
    let verdict: Verdict = allowVerdict
    for (const [text, sort] of getTexts(part)) {
      verdict = louder(verdict, yield* textSteps(text, sort, part))
      if (verdict.verdict === 'block') break
    }
    const secrets = yield* secretKindSteps(part)
    if (verdict.verdict === 'allow') known.keep(part, { score: verdict.score, secrets })
    return screening(verdict, verdict.score, secrets)
  }

  function* screenSteps(messages: readonly (Message | PromptDefinition)[]): Steps<Screening> {
    let verdict: Verdict = allowVerdict
    const secrets = new Set<string>()
    for (const message of messages) {
      const result = yield* partSteps(message)
      if (result.verdict === 'block') return result
      for (const kind of result.secrets) secrets.add(kind)
      verdict = louder(verdict, result)
    }
    for (const text of joinedTurns(messages)) {
      const turns = { role: 'turns', text } as const
      if (known.find(turns) !== null) continue
      const item = byAll(text)
      if (item.verdict === 'block') return screening(item, item.score, [])
      known.keep(turns, { score: item.score, secrets: [] })
    }
    return screening(verdict, verdict.score, [...secrets])
  }

  return {
    screenSteps,
    screenMessages: messages => getResult(screenSteps(messages)),
    embeddedSteps: text => textSteps(text, 'embedded'),
  }
}

/** Runs all steps at once. */
function getResult<Result>(steps: Steps<Result>): Result {
  let step = steps.next()
  while (step.done !== true) step = steps.next()
  return step.value
}

/** Characters moderated per turn of the event loop: less than 20 ms of work, whatever the text. */
export const charactersPerTurn = 16_384

/** Returns a function that runs steps to their verdict and waits for `pause` after each `charactersPerTurn` of all its calls. */
export function createPacer(pause: () => Promise<void>): <Result>(steps: Steps<Result>) => Promise<Result> {
  let characters = 0
  return async steps => {
    let step = steps.next()
    for (; step.done !== true; step = steps.next()) {
      characters += step.value
      if (characters < charactersPerTurn) continue
      characters = 0
      await pause()
    }
    return step.value
  }
}

/** Ends this turn of the event loop. */
export const nextTurn = () => new Promise<void>(resolve => setImmediate(resolve))

const longestReread = 1_000
/** A shorter quotation holds no order with a purpose. */
const leastMaterial = 16
const ordering: ReadonlySet<string> = new Set(['jailbreak', 'prompt_injection'])

const sorts: Readonly<Record<Message['role'], TextSort>> = {
  system: 'prompt',
  user: 'prompt',
  tool: 'data',
  assistant: 'output',
}

/** Returns the strings of a call's arguments: quoted in JSON, a text would look like a quotation. Their names are the client's. */
function argumentTexts(json: string): string {
  const value = parseUntrustedJson(json)
  if (value === undefined) return json
  const { texts, opaque, credentials } = jsonTexts(value)
  return [...texts, ...opaque, ...credentials].join('\n')
}

/** Returns the texts of a message or definition, and how each is judged. Names and IDs have no topic. */
function getTexts(part: Message | PromptDefinition): readonly (readonly [text: string, sort: TextSort])[] {
  if (part.role === 'definition') return part.texts.map(text => [text, part.kind === 'data' ? 'data' : 'definition'])
  const names = messageNames(part)
  const texts = messageTexts(withReadArguments(part)).map(text => [text, sorts[part.role]] as const)
  return names.length === 0 ? texts : [...texts, [names.join('\n'), 'data']]
}

/** Returns a message with the arguments of its calls as texts. */
function withReadArguments(message: Message): Message {
  if (message.role !== 'assistant' || message.toolCalls.length === 0) return message
  const toolCalls = message.toolCalls.map(call => ({ ...call, arguments: argumentTexts(call.arguments) }))
  return { ...message, toolCalls }
}

/** Spelt out: a spread takes microseconds. */
function screening({ verdict, layer, category, rule }: Verdict, score: number, secrets: readonly string[]): Screening {
  return { verdict, layer, category, score, rule, secrets }
}

function louder(verdict: Verdict, other: Verdict): Verdict {
  return other.verdict === 'block' || other.score > verdict.score ? other : verdict
}

/** Joins the turns of a user into one text, since a request may be split over several turns. */

/** Number of a user's latest turns that are joined. */
const mostTurns = 5
/** Characters taken from the end of one turn and the start of the next, in UTF-16 units. */
const mostBorder = 300
/** Longer turns are not treated as fragments of one request. */
const longestPiece = 200

/** Returns each pair of adjacent user turns as one text, and all short turns as one text if there are more than two. */
export function joinedTurns(messages: readonly (Message | PromptDefinition)[]): readonly string[] {
  const turns: string[] = []
  for (let at = messages.length - 1; at >= 0 && turns.length < mostTurns; at--) {
    const message = messages[at]
    if (message?.role !== 'user') continue
    const text = getUserText(message)
    if (text.trim() !== '') turns.unshift(text)
  }
  if (turns.length < 2) return []
  const joined = turns.slice(1).flatMap((next, index) => {
    const first = turns[index] ?? ''
    return [`${withoutPause(first.slice(-mostBorder))} ${next.slice(0, mostBorder)}`]
  })
  const pieces = turns.filter(({ length }) => length <= longestPiece)
  if (pieces.length > 2) joined.push(pieces.map(withoutPause).join(' '))
  return joined
}

/** Removes trailing dots of a text that continues. */
function withoutPause(text: string): string {
  let end = text.length
  while (end > 0 && pauses.has(text.charCodeAt(end - 1))) end--
  return text.slice(0, end)
}

const pauses = new Set(Array.from(' \n\t…,;:-–—', mark => mark.charCodeAt(0)))
