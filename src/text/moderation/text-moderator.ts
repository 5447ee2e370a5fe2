/** Applies three layers to a text in process: patterns, classifier, blocked hosts. Linear and synchronous. */
import type { Message, PromptDefinition } from '../../core/chat/chat.ts'
import { jsonTexts, messageNames, messageTexts } from '../../core/chat/request-texts.ts'
import type { Digested } from '../../core/text/keyed-digests.ts'
import { parseUntrustedJson } from '../../core/validation/untrusted-json.ts'
import { getPieces, isLong } from '../code-units.ts'
import { deobfuscatedVariants } from '../disguises/deobfuscate.ts'
import type { HarmClassifier } from '../harm/harm-classifier.ts'
import { extractHosts } from '../hosts/extract-hosts.ts'
import { findBlockingRule, type ModerationRule, type ModerationRules, type TextKind } from '../rules/pattern-rules.ts'
import { readSegments } from '../segments/segments.ts'
import { joinedTurns } from './turns.ts'

type ModerationLayer = 'patterns' | 'classifier' | 'urls'

/** Result of moderating a text. `score` is the classifier's (0–1), whichever layer blocked. */
export type Verdict = {
  readonly verdict: 'allow' | 'block'
  readonly layer: ModerationLayer | null
  readonly category: string | null
  readonly score: number
  /** ID of the blocking rule, for the operator; null = another layer blocked. */
  readonly rule: string | null
}

/** Lookup of hosts that texts must not link to. */
export type BlockedHosts = { isBlocked(host: string): boolean }

/** Yields the characters of each reading that was judged; no step reads more than a piece. Returns the verdict. */
export type Steps = Generator<number, Verdict, void>

/** Moderation in process. */
export type TextModerator = {
  /**
   * Judges a text that is only embedded, by the rules of `data` only: an embedding is not a response, and a corpus is a
   * thousand times as long as a prompt.
   */
  embeddedSteps(text: string): Steps
  /**
   * Judges one message or definition piece by piece: yields the characters of each piece that was read, and returns the verdict. What
   * was found clean is known afterwards.
   */
  screenSteps(part: Message | PromptDefinition): Steps
  /**
   * Judges a conversation and definitions: returns the first block, or the highest score. Text that the model reads, such as
   * a tool result, is blocked for instructions in it, not for its topics. Definitions of tools and schemas skip the
   * classifier: it was trained on requests, and "Runs a command" or "Transfers money" look like requests to it.
   */
  screenMessages(messages: readonly (Message | PromptDefinition)[]): Verdict
}

/** Messages, joined turns and definitions that were found clean, with their score. */
export type CleanMessages = {
  /** null = not known. */
  findScore(message: Digested): number | null
  keep(message: Digested, score: number): void
}

/**
 * Creates a text moderator. An assistant message is judged like an output, so that an output that was sent is not
 * blocked when it returns as history.
 */
export function createTextModerator(options: {
  readonly rules: ModerationRules
  readonly hosts: BlockedHosts
  readonly classify: HarmClassifier['prompt']
  readonly answer: (text: string) => Verdict
  readonly known: CleanMessages
}): TextModerator {
  const { rules, hosts, classify, known } = options

  /** Text that the model reads describes many things but requests nothing. */
  const ofTopic = (text: string, kind: TextKind) => (kind === 'prompt' ? classify(text) : { category: null, score: 0 })

  const read = (text: string, kind: TextKind): Verdict => {
    const rule = findBlockingRule(rules, text, kind)
    const { category, score } = ofTopic(text, kind)
    if (rule !== null) return blockVerdict('patterns', rule.category, score, rule)
    if (category !== null) return blockVerdict('classifier', category, score)
    if (containsBlockedHost(hosts, text)) return blockVerdict('urls', 'malicious_url', score)
    return { ...allowVerdict, score }
  }

  /** Judges a text and its variants by rules, and by hosts unless it is embedded, in pieces if it is long. */
  function* ruleSteps(text: string, kind: TextKind | 'embedded'): Steps {
    for (const piece of getPieces(text))
      for (const scan of [piece, ...deobfuscatedVariants(piece)]) {
        const verdict = kind === 'embedded' ? byPatterns(scan, 'data') : byRules(scan, kind)
        if (verdict.verdict === 'block') return verdict
        yield scan.length
      }
    return allowVerdict
  }

  /** What a user pastes has no more authority than a tool result: orders to the model in it are not the user's. */
  const ordersInMaterial = (text: string): Verdict | null => {
    const { parts, material } = readSegments(text)
    if (material < leastMaterial) return null
    for (const { kind, from, to } of parts) {
      if (kind !== 'material' || to - from < leastMaterial) continue
      const rule = findBlockingRule(rules, text.slice(from, to), 'data')
      if (rule !== null && ordering.has(rule.category)) return blockVerdict('patterns', rule.category, 0, rule)
    }
    return null
  }

  /** Judges a text of one piece by all layers, and its variants. */
  const judge = (text: string, kind: TextKind): Verdict => {
    let verdict = read(text, kind)
    if (verdict.verdict === 'block') return verdict
    const pasted = kind === 'prompt' ? ordersInMaterial(text) : null
    if (pasted !== null) return { ...pasted, score: verdict.score }
    // For a long text, usually code that only looks obfuscated, rules and hosts suffice.
    const longestRead = text.length <= longestReread ? longestReread : 0
    for (const scan of deobfuscatedVariants(text)) {
      const other = scan.length <= longestRead ? read(scan, kind) : byRules(scan, kind)
      if (other.verdict === 'block') return other
      verdict = louder(verdict, other)
    }
    return verdict
  }

  /** Judges a text of several pieces. The classifier reads a bounded part of it. */
  function* longSteps(text: string, kind: TextKind): Steps {
    const { category, score } = ofTopic(text, kind)
    if (category !== null) return blockVerdict('classifier', category, score)
    const verdict = yield* ruleSteps(text, kind)
    return { ...verdict, score }
  }

  /** Judges the texts of a message or definition: those of several pieces in steps, each other one at once. */
  function* textSteps(texts: readonly string[], kind: TextKind | 'output' | 'definition'): Steps {
    let verdict: Verdict = allowVerdict
    for (const text of texts) {
      let item: Verdict
      if (kind === 'output') item = yield* outputSteps(text)
      else if (kind === 'definition') item = yield* ruleSteps(text, 'prompt')
      else if (isLong(text)) item = yield* longSteps(text, kind)
      else {
        item = judge(text, kind)
        yield text.length
      }
      if (item.verdict === 'block') return item
      verdict = louder(verdict, item)
    }
    return verdict
  }

  /** Judges an output in the history of a conversation. */
  function* outputSteps(text: string): Steps {
    for (const piece of getPieces(text)) {
      const answer = options.answer(piece)
      if (answer.verdict === 'block') return answer
      yield piece.length
    }
    return allowVerdict
  }

  const byPatterns = (text: string, kind: TextKind): Verdict => {
    const rule = findBlockingRule(rules, text, kind)
    return rule === null ? allowVerdict : blockVerdict('patterns', rule.category, 0, rule)
  }

  const byRules = (text: string, kind: TextKind): Verdict => {
    const verdict = byPatterns(text, kind)
    if (verdict.verdict === 'block' || !containsBlockedHost(hosts, text)) return verdict
    return blockVerdict('urls', 'malicious_url', 0)
  }

  /** Judges one message, without the turns around it, which `joinedTurns` covers, or one definition. */
  function* partSteps(part: Message | PromptDefinition): Steps {
    const score = known.findScore(part)
    if (score !== null) return { ...allowVerdict, score }
    const isDefinition = part.role === 'definition'
    const verdict = yield* isDefinition
      ? textSteps(part.texts, part.kind === 'data' ? 'data' : 'definition')
      : textSteps(messageTexts(withReadArguments(part)), kinds[part.role])
    if (verdict.verdict === 'block') return verdict
    // Names and IDs have no topic, so the classifier does not read them.
    const names = isDefinition ? [] : messageNames(part)
    const named = names.length === 0 ? allowVerdict : yield* ruleSteps(names.join('\n'), 'data')
    if (named.verdict === 'block') return named
    known.keep(part, verdict.score)
    return verdict
  }

  return {
    screenSteps: partSteps,
    embeddedSteps: text => ruleSteps(text, 'embedded'),
    screenMessages(messages) {
      let verdict: Verdict = allowVerdict
      for (const message of messages) {
        const result = getResult(partSteps(message))
        if (result.verdict === 'block') return result
        verdict = louder(verdict, result)
      }
      for (const text of joinedTurns(messages)) {
        const turns = { role: 'turns', text } as const
        if (known.findScore(turns) !== null) continue
        const item = read(text, 'prompt')
        if (item.verdict === 'block') return item
        known.keep(turns, item.score)
      }
      return verdict
    },
  }
}

/** Runs all steps at once. */
export function getResult<Result>(steps: Generator<number, Result, void>): Result {
  let step = steps.next()
  while (step.done !== true) step = steps.next()
  return step.value
}

/** Characters moderated per turn of the event loop: less than 20 ms of work, whatever the text. */
export const charactersPerTurn = 16_384

/** Returns a function that runs steps to their verdict and waits for `pause` after each `charactersPerTurn` of all its calls. */
export function createPacer(pause: () => Promise<void>): (steps: Steps) => Promise<Verdict> {
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

const kinds: Readonly<Record<Message['role'], TextKind | 'output'>> = {
  system: 'prompt',
  user: 'prompt',
  tool: 'data',
  assistant: 'output',
}

export const allowVerdict: Verdict = { verdict: 'allow', layer: null, category: null, score: 0, rule: null }

/** Returns a blocking verdict; `score` is the classifier's, 0–1. */
export function blockVerdict(
  layer: ModerationLayer,
  category: string,
  score: number,
  rule: ModerationRule | null = null,
): Verdict {
  return { verdict: 'block', layer, category, score, rule: rule === null ? null : `${rule.id}: ${rule.reason}` }
}

/** Returns true if a text links to a blocked host in any notation. */
export function containsBlockedHost(hosts: BlockedHosts, text: string): boolean {
  let found = false
  extractHosts(text, host => {
    found = hosts.isBlocked(host)
    return !found
  })
  return found
}

/** Returns the strings of a call's arguments: quoted in JSON, a text would look like a quotation. Their names are the client's. */
function argumentTexts(json: string): string {
  const value = parseUntrustedJson(json)
  if (value === undefined) return json
  const { texts, opaque, credentials } = jsonTexts(value)
  return [...texts, ...opaque, ...credentials].join('\n')
}

/** Returns a message with the arguments of its calls as texts. */
function withReadArguments(message: Message): Message {
  if (message.role !== 'assistant' || message.toolCalls.length === 0) return message
  const toolCalls = message.toolCalls.map(call => ({ ...call, arguments: argumentTexts(call.arguments) }))
  return { ...message, toolCalls }
}

function louder(verdict: Verdict, other: Verdict): Verdict {
  return other.score > verdict.score ? other : verdict
}
