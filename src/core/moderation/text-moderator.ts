/** The three layers over a text, in process: rules, classifier, blocked domains. Linear, without a wait. */
import type { ContentPart, Message } from '../chat/chat.ts'
import type { PromptDefinition } from '../chat/tool-definitions.ts'
import { deobfuscatedVariants } from './deobfuscate.ts'
import { extractHosts } from './extract-hosts.ts'
import type { HarmClassifier } from './harm-classifier.ts'
import { findBlockingRule, firstBrokenByData, type SafetyRule, type SafetyRules } from './pattern-rules.ts'
import { joinedTurns } from './turns.ts'

type SafetyLayer = 'patterns' | 'classifier' | 'urls'

/** What the layers say of a text. `score` is the classifier's, 0–1, whatever layer refused. */
export type Verdict = {
  readonly verdict: 'allow' | 'block'
  readonly layer: SafetyLayer | null
  readonly category: string | null
  readonly score: number
  /** Which rule refused, for the operator; null = not a rule. */
  readonly rule: string | null
}

/** Which hosts may not be pointed at. */
export type BlockedHosts = { isBlocked(host: string): boolean }

export type TextModerator = {
  /** What somebody asks. */
  text(text: string): Verdict
  /** What a model is to read: a tool's result, a fetched page. An order in it is refused, and nothing that it tells of. */
  data(text: string): Verdict
  /**
   * A text that is only embedded: by the rules for `data`. No model answers it, and a corpus is much longer than a prompt.
   */
  embedded(text: string): Verdict
  /** A whole conversation: the first refusal, or the highest score. */
  messages(messages: readonly Message[]): Verdict
  /**
   * What is defined beside one. Not by the classifier: it has learned how people ask, and what tools say of themselves
   * ("Runs a command", "Transfers money") sounds to it like somebody's wish.
   */
  definition(definition: PromptDefinition): Verdict
}

/** Messages and definitions that were found clean, with their score. */
export type CleanMessages = {
  /** null = not known. */
  scoreOf(message: Message | PromptDefinition): number | null
  keep(message: Message | PromptDefinition, score: number): void
}

/** A model's own turn is screened like an answer: what went out as one must not be refused when it comes back as history. */
export function createTextModerator(options: {
  readonly rules: SafetyRules
  /** Of what is read, not asked. */
  readonly dataRules: SafetyRules
  readonly hosts: BlockedHosts
  readonly classify: Pick<HarmClassifier, 'prompt' | 'data'>
  readonly answer: (text: string) => Verdict
  readonly known: CleanMessages
}): TextModerator {
  const { rules, dataRules, hosts, classify, known } = options

  const read = (text: string, kind: Kind): Verdict => {
    const rule = brokenBy(text, kind)
    const { category, score } = classify[kind](text)
    if (rule !== null) return blockVerdict('patterns', rule.category, score, rule)
    if (category !== null) return blockVerdict('classifier', category, score)
    if (containsBlockedHost(hosts, text)) return blockVerdict('urls', 'malicious_url', score)
    return { ...allowVerdict, score }
  }

  const brokenBy = (text: string, kind: Kind): SafetyRule | null =>
    kind === 'data' ? firstBrokenByData(dataRules, text) : findBlockingRule(rules, text)

  const byRules = (text: string, kind: Kind): Verdict => {
    const rule = brokenBy(text, kind)
    return rule === null ? allowVerdict : blockVerdict('patterns', rule.category, 0, rule)
  }

  const screenText = (text: string, kind: Kind): Verdict => {
    let verdict = read(text, kind)
    if (verdict.verdict === 'block') return verdict
    for (const reading of deobfuscatedVariants(text)) {
      // A short text is read anew as a whole; of a long one, mostly code that only looks disguised, the rules suffice.
      const other = reading.length <= longestReread ? read(reading, kind) : byRules(reading, kind)
      if (other.verdict === 'block') return other
      verdict = louder(verdict, other)
    }
    return verdict
  }

  /** By itself: what turns say together is another matter. */
  const screenMessage = (message: Message): Verdict => {
    const score = known.scoreOf(message)
    if (score !== null) return { ...allowVerdict, score }
    let verdict: Verdict = allowVerdict
    for (const text of messageTexts(message)) {
      const one = message.role === 'assistant' ? options.answer(text) : screenText(text, kindOf(message))
      if (one.verdict === 'block') return one
      verdict = louder(verdict, one)
    }
    known.keep(message, verdict.score)
    return verdict
  }

  const screenDefinition = (definition: PromptDefinition): Verdict => {
    if (known.scoreOf(definition) !== null) return allowVerdict
    for (const text of definition.texts)
      for (const reading of [text, ...deobfuscatedVariants(text)]) {
        const one = byRules(reading, 'prompt')
        if (one.verdict === 'block') return one
        if (containsBlockedHost(hosts, reading)) return blockVerdict('urls', 'malicious_url', 0)
      }
    known.keep(definition, allowVerdict.score)
    return allowVerdict
  }

  return {
    text: text => screenText(text, 'prompt'),
    data: text => screenText(text, 'data'),
    definition: screenDefinition,
    embedded(text) {
      for (const reading of [text, ...deobfuscatedVariants(text)]) {
        const one = byRules(reading, 'data')
        if (one.verdict === 'block') return one
      }
      return allowVerdict
    },
    messages(messages) {
      let verdict: Verdict = allowVerdict
      for (const message of messages) {
        const one = screenMessage(message)
        if (one.verdict === 'block') return one
        verdict = louder(verdict, one)
      }
      for (const text of joinedTurns(messages)) {
        const one = read(text, 'prompt')
        if (one.verdict === 'block') return one
      }
      return verdict
    },
  }
}

const longestReread = 1_000

/** Whether a text asks for something or is to be read. */
type Kind = 'prompt' | 'data'

function kindOf({ role }: Message): Kind {
  return role === 'tool' ? 'data' : 'prompt'
}

export const allowVerdict: Verdict = { verdict: 'allow', layer: null, category: null, score: 0, rule: null }

/** The verdict of a refusal; `score` is the classifier’s, 0–1. */
export function blockVerdict(
  layer: SafetyLayer,
  category: string,
  score: number,
  rule: SafetyRule | null = null,
): Verdict {
  return { verdict: 'block', layer, category, score, rule: rule === null ? null : `${rule.id}: ${rule.reason}` }
}

/** Whether a text points at a blocked host, however it is written. */
export function containsBlockedHost(hosts: BlockedHosts, text: string): boolean {
  let found = false
  extractHosts(text, host => {
    found = hosts.isBlocked(host)
    return !found
  })
  return found
}

/** All that a message brings into the conversation as text. */
export function messageTexts(message: Message): readonly string[] {
  switch (message.role) {
    case 'system':
    case 'tool':
      return [message.text]
    case 'user':
      return message.content.flatMap(textsOfPart)
    case 'assistant':
      return [message.text ?? '', message.reasoning ?? '', ...message.toolCalls.map(call => call.arguments)].filter(
        text => text !== '',
      )
    default:
      return message satisfies never
  }
}

/** Documents are not read: what is judged of one is the name that the model sees. */
function textsOfPart(part: ContentPart): readonly string[] {
  switch (part.type) {
    case 'text':
      return [part.text]
    case 'image':
      return linked(part.url)
    case 'file':
      return part.name === null ? [] : [part.name]
  }
}

/** An image may be fetched from anywhere; one that is sent along points nowhere. */
function linked(url: string): readonly string[] {
  return url.startsWith('data:') ? [] : [url]
}

function louder(one: Verdict, other: Verdict): Verdict {
  return other.score > one.score ? other : one
}
