import type { Ask, Message } from '../core/chat.ts'
import { createEnding, type EndingSignal } from '../core/ending.ts'
import { GatewayError } from '../core/errors.ts'
import { masked } from '../core/leaks.ts'
import { textsOf } from '../core/screen.ts'
import type { Safety } from '../safety/safety.ts'

declare const screened: unique symbol

/** An ask that moderation has let through. Only `moderate` makes one, so what was never screened does not compile. */
export type Screened = {
  readonly [screened]: true
  readonly ask: Ask
  /** Kinds of secrets found in the conversation. */
  readonly secrets: readonly string[]
  /** Aborts with the request, and with the error to be told when somebody else's verdict comes in as a refusal. */
  readonly signal: EndingSignal
  /** Settled once that verdict is in; nothing may reach the caller before. Throws a refusal. null = nobody is asked. */
  readonly verdict: Promise<void> | null
}

export type ModerateDeps = {
  readonly safety: Pick<Safety, 'screenMessages' | 'moderation' | 'secrets' | 'leaksIn' | 'secretsIn'>
  readonly log: { warn(event: string, fields: Readonly<Record<string, string | number>>): void }
}

/**
 * Screens the whole conversation, not the last message alone: an instruction may have come in with an earlier turn or a
 * tool's result. Throws `content_blocked` with the layer and category that refused. What a configured endpoint or model says
 * is not waited for here: the request goes on while it is asked, and ends when it refuses.
 */
export function moderate(
  deps: ModerateDeps,
  ask: Ask,
  request: { readonly id: string; readonly signal: EndingSignal },
): Screened {
  const { safety } = deps
  const { verdict, layer, category, rule } = safety.screenMessages(ask.messages)
  if (verdict === 'block') throw refusal(layer ?? 'patterns', category ?? 'illegal', rule)
  const kinds = secretsIn(safety, ask.messages)
  if (kinds.length > 0) {
    if (safety.secrets === 'block') throw refusal('patterns', 'secrets', `found: ${kinds.join(', ')}`)
    deps.log.warn('secrets_in_prompt', {
      request_id: request.id,
      kinds: kinds.join(', '),
      masked: String(safety.secrets === 'mask'),
    })
  }
  const clean = safety.secrets === 'mask' && kinds.length > 0 ? masking(safety, ask) : ask
  return { ask: clean, secrets: kinds, ...askElsewhere(safety, clean, request) } as Screened
}

/** Asks the configured endpoint or model, without waiting. */
function askElsewhere(
  { moderation }: ModerateDeps['safety'],
  ask: Ask,
  request: { readonly id: string; readonly signal: EndingSignal },
): Pick<Screened, 'signal' | 'verdict'> {
  if (moderation === null) return { signal: request.signal, verdict: null }
  const ending = createEnding()
  const leave = () => ending.abort(request.signal.reason)
  request.signal.addEventListener('abort', leave)
  if (request.signal.aborted) leave()
  const asking = new AbortController()
  ending.signal.addEventListener('abort', () => asking.abort())
  const texts = ask.messages.flatMap(textsOf).filter(text => text.trim() !== '')
  const verdict = moderation.ask(texts, request.id, asking.signal).then(category => {
    if (category === null) return
    const error = refusal('classifier', category, 'the configured moderation')
    ending.abort(error)
    throw error
  })
  // Whoever awaits it is told; a request that ended before has nobody to tell.
  verdict.catch(() => {})
  return { signal: ending.signal, verdict }
}

/** Kinds of secrets in what was written. */
function secretsIn(safety: Pick<Safety, 'secretsIn'>, messages: readonly Message[]): readonly string[] {
  const kinds = messages.flatMap(message => safety.secretsIn(message))
  return kinds.length === 0 ? kinds : [...new Set(kinds)]
}

/** The ask with every secret masked. */
function masking({ leaksIn }: Pick<Safety, 'leaksIn'>, ask: Ask): Ask {
  return { ...ask, messages: ask.messages.map(message => cleaned(message, text => masked(text, leaksIn(text)))) }
}

function cleaned(message: Message, clean: (text: string) => string): Message {
  switch (message.role) {
    case 'system':
    case 'tool':
      return { ...message, text: clean(message.text) }
    case 'user':
      return {
        ...message,
        content: message.content.map(part => (part.type === 'text' ? { ...part, text: clean(part.text) } : part)),
      }
    case 'assistant':
      return {
        ...message,
        text: message.text === null ? null : clean(message.text),
        toolCalls: message.toolCalls.map(call => ({ ...call, arguments: clean(call.arguments) })),
      }
    default:
      return message satisfies never
  }
}

function refusal(layer: string, category: string, detail: string | null): GatewayError {
  return new GatewayError('content_blocked', adviceFor(category), {
    param: 'messages',
    layer,
    category,
    ...(detail === null ? {} : { detail }),
  })
}

function adviceFor(category: string): string {
  switch (category) {
    case 'prompt_injection':
    case 'jailbreak':
      return 'The conversation holds text that tries to override the model’s instructions. Remove it (look into tool results and pasted text too) and ask again.'
    case 'malicious_url':
      return 'The conversation points at an address that is known as harmful. Remove it and ask again.'
    case 'secrets':
      return 'The conversation holds a key, a card number or another secret. Remove it, and replace the secret: it has left its place.'
    default:
      return 'The conversation asks for something this service does not help with. Change the request and ask again.'
  }
}
