/**
 * Marks that let Claude read the prompt up to there from the cache of its provider, or write it: the client's own, else those that the
 * gateway sets. Without marks it caches nothing. Of compatible servers, OpenRouter and hosts of Claude read them, in parts and tools;
 * others may refuse an unknown field and receive none.
 */

import type { CacheMark, ChatRequest, ContentPart, Message, Tool } from '../core/chat/chat.ts'
import type { AutomaticCacheMarks } from '../core/chat/provider-features.ts'
import type { WireTurn } from './conversation-steps.ts'
import type { Json } from './json.ts'

type Prompt = Pick<ChatRequest, 'messages' | 'tools'>
/** `droppedMarks`: the name that reports marks beyond the maximum. */
type MarkedPrompt = Prompt & { readonly droppedMarks: readonly string[] }
type Markable = Exclude<Message, { readonly role: 'user' }> | ContentPart | Tool

/** More marks are refused with status 400: the last four count. */
const maximumMarks = 4

/** Returns true for the ID of a Claude model at any host. */
export function isClaude({ id }: { readonly id: string }): boolean {
  return /(?:^|[^a-z])claude(?:[^a-z]|$)/i.test(id)
}

/** Five minutes is the default, which older hosts do not know by name. */
export function cacheControl(mark: CacheMark): Json {
  return mark === '5m' ? { type: 'ephemeral' } : { type: 'ephemeral', ttl: mark }
}

/** Returns the prompt with the marks to send. */
export function withPromptMarks({ messages, tools }: Prompt, automatic: AutomaticCacheMarks | null): MarkedPrompt {
  if (automatic === null && !tools.some(isMarked) && !messages.some(isMarked))
    return { messages, tools, droppedMarks: [] }
  const system = messages.filter(message => message.role === 'system')
  const turns = turnsIn(messages)
  const inOrder: readonly Markable[] = [...tools, ...system, ...turns.flatMap(({ parts }) => parts)]
  const own = inOrder.filter(isMarked)
  const set = own.length > 0 || automatic === null ? null : ends(tools, system, turns, automatic)
  const kept = new Set(set ?? own.slice(-maximumMarks))
  if (set === null && kept.size === own.length) return { messages, tools, droppedMarks: [] }
  const marked = <Block extends Markable>(block: Block): Block => {
    const cache = kept.has(block) ? (block.cache ?? '5m') : undefined
    return cache === block.cache ? block : { ...block, cache }
  }
  return {
    messages: messages.map(message =>
      message.role === 'user' ? { ...message, content: message.content.map(marked) } : marked(message),
    ),
    tools: tools.map(marked),
    droppedMarks: kept.size < own.length ? ['cache_control'] : [],
  }
}

function isMarked(block: Message | Markable): boolean {
  return 'content' in block ? block.content.some(isMarked) : block.cache !== undefined
}

/**
 * Returns the ends of what stays equal between requests: tools and system text; for a conversation also the end of this request and the
 * end of the one before. The provider looks for an earlier mark at most 20 blocks back, and a turn with many parallel calls is longer.
 */
function ends(
  tools: readonly Tool[],
  system: readonly Markable[],
  turns: readonly WireTurn<Markable>[],
  automatic: AutomaticCacheMarks,
): readonly Markable[] {
  const users = automatic === 'conversation' ? turns.filter(({ role }) => role === 'user').slice(-2) : []
  const blocks = [system.at(-1) ?? tools.at(-1), ...users.map(({ parts }) => parts.at(-1))]
  return blocks.filter(block => block !== undefined)
}

/** Returns the turns, in which results of tools belong to the user's as in Anthropic's form. */
function turnsIn(messages: readonly Message[]): readonly WireTurn<Markable>[] {
  const turns: WireTurn<Markable>[] = []
  for (const message of messages) {
    if (message.role === 'system') continue
    const role = message.role === 'assistant' ? 'assistant' : 'user'
    const parts = message.role === 'user' ? message.content : [message]
    const last = turns.at(-1)
    if (last?.role === role) for (const part of parts) last.parts.push(part)
    else turns.push({ role, parts: [...parts] })
  }
  return turns
}

/** Joins the system texts that are separate only for their marks, which this server does not receive. */
export function withJoinedSystem({ messages, tools }: Prompt): MarkedPrompt {
  const joined: Message[] = []
  let wasMarked = false
  for (const message of messages) {
    const last = joined.at(-1)
    const isMarked = message.role === 'system' && message.cache !== undefined
    if (wasMarked && message.role === 'system' && last?.role === 'system')
      joined[joined.length - 1] = { role: 'system', text: `${last.text}\n\n${message.text}` }
    else joined.push(message)
    wasMarked = isMarked
  }
  return { messages: joined, tools, droppedMarks: [] }
}
