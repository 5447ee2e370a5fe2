/**
 * Cache marks for a server of the Chat Completions form. OpenRouter, and hosts of Claude, read Anthropic's marks in content parts
 * and tools; other servers may refuse an unknown field and receive none.
 */

import type { ChatRequest, ContentPart, Message, Tool } from '../../core/chat/chat.ts'
import type { AutomaticCacheMarks } from '../../core/chat/provider-features.ts'
import { chosenMarks, type MarkedBlocks, type WireTurn } from '../conversation-steps.ts'

type Prompt = Pick<ChatRequest, 'messages' | 'tools'>
/** `droppedMarks`: the name that reports marks beyond the maximum. */
type MarkedPrompt = Prompt & { readonly droppedMarks: readonly string[] }

/** Returns true for the ID of a Claude model at any host. */
export function isClaude({ id }: { readonly id: string }): boolean {
  return /(?:^|[^a-z])claude(?:[^a-z]|$)/i.test(id)
}

/** Returns the prompt with the marks to send. */
export function withPromptMarks({ messages, tools }: Prompt, automatic: AutomaticCacheMarks | null): MarkedPrompt {
  const system = messages.filter(message => message.role === 'system')
  const turns = turnsIn(messages)
  const own: MarkedBlocks = new Map()
  for (const block of [...tools, ...system, ...turns.flatMap(({ parts }) => parts)])
    if (block.cache !== undefined) own.set(block, block.cache)
  const { marks, dropsMarks } = chosenMarks({ tools, system, turns }, own, automatic)
  const marked = <Block extends Markable | Tool>(block: Block): Block => {
    const cache = marks.get(block)
    return cache === block.cache ? block : { ...block, cache }
  }
  return {
    messages: messages.map(message =>
      message.role === 'user' ? { ...message, content: message.content.map(marked) } : marked(message),
    ),
    tools: tools.map(marked),
    droppedMarks: dropsMarks ? ['cache_control'] : [],
  }
}

type Markable = Exclude<Message, { readonly role: 'user' }> | ContentPart

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
