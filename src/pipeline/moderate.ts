import type { Ask, Message } from '../core/chat.ts'
import { GatewayError } from '../core/errors.ts'
import { firstBroken, type SafetyCategory, type SafetyRules } from '../core/patterns.ts'

declare const screened: unique symbol

/** An ask that moderation has let through. Only `moderate` makes one, so what was never screened does not compile. */
export type Screened = { readonly [screened]: true; readonly ask: Ask }

export type ModerateDeps = { readonly safetyRules: SafetyRules }

/**
 * Screens the whole conversation, not the last message alone: an instruction may have come in with an earlier turn or a
 * tool's result. Throws `content_blocked` with the layer and category that refused. A promise, since the layers after the
 * patterns may have to ask someone.
 */
export async function moderate(deps: ModerateDeps, ask: Ask): Promise<Screened> {
  for (const message of ask.messages) {
    for (const text of foreignTexts(message)) {
      const rule = firstBroken(deps.safetyRules, text)
      if (rule === null) continue
      throw new GatewayError('content_blocked', adviceFor(rule.category), {
        param: 'messages',
        layer: 'patterns',
        category: rule.category,
        detail: `rule ${rule.id}: ${rule.reason}`,
      })
    }
  }
  return { ask } as Screened
}

/** What others put into the conversation. A model's own turn is left out: its refusal names what it refuses. */
export function foreignTexts(message: Message): readonly string[] {
  switch (message.role) {
    case 'system':
    case 'tool':
      return [message.text]
    case 'user':
      return message.content.flatMap(part => (part.type === 'text' ? [part.text] : []))
    case 'assistant':
      return []
    default:
      return message satisfies never
  }
}

function adviceFor(category: SafetyCategory): string {
  return category === 'prompt_injection' || category === 'jailbreak'
    ? 'The conversation holds text that tries to override the model’s instructions. Remove it (look into tool results and pasted text too) and ask again.'
    : 'The conversation asks for something this service does not help with. Change the request and ask again.'
}
