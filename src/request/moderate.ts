/** Moderation of a request before the upstream is called. */
import type { ChatRequest, EmbeddingInput, EmbeddingInputs, Message, PromptDefinition } from '../core/chat/chat.ts'
import { inputPlace } from '../core/chat/embeddings.ts'
import { abortError, createRequestAbort, type RequestAbortSignal } from '../core/chat/request-abort.ts'
import { partTexts } from '../core/chat/request-texts.ts'
import { collectDefinitions, mapDefinitionTexts } from '../core/chat/tool-definitions.ts'
import { constraintsUnmet } from '../core/policy/constraints.ts'
import type { Log } from '../core/ports.ts'
import { GatewayError } from '../core/validation/errors.ts'
import type { Moderation } from '../text/moderation/layers/moderation.ts'
import { type DetectedSecret, detectSecrets, maskSecrets } from '../text/moderation/secret-detection.ts'
import { createPacer, nextTurn, type Steps } from '../text/moderation/text-moderator.ts'
import type { Verdict } from '../text/moderation/verdict.ts'

declare const screened: unique symbol

/**
 * A chat request that passed moderation. Only `moderate` creates one, so code that skips moderation does not compile.
 */
export type ModeratedRequest = {
  readonly [screened]: true
  readonly request: ChatRequest
  /** Kinds of detected secrets in the conversation and its definitions. */
  readonly secrets: readonly string[]
  /** Aborts with the request, and with the error of a blocking verdict of the external moderation. */
  readonly signal: RequestAbortSignal
  /**
   * Settles after that verdict; no output may be sent before. Throws the error of a blocking verdict. Null = no
   * external moderation.
   */
  readonly verdict: Promise<void> | null
}

export type ModerateDeps = {
  readonly moderation: Pick<Moderation, 'screenSteps' | 'embeddedSteps' | 'moderation' | 'secrets'>
  readonly log: Pick<Log, 'warn'>
}

/**
 * Moderates the whole conversation and not only its last message: an instruction may be in an earlier turn, in a tool's
 * result, or in a tool's definition from another source. Throws `content_blocked` with the layer and category. Lets other
 * requests run between the pieces of a long one. Does not wait for the external moderation: the request continues meanwhile
 * and ends at a blocking verdict.
 */
export async function moderate(
  deps: ModerateDeps,
  chatRequest: ChatRequest,
  request: { readonly id: string; readonly signal: RequestAbortSignal },
): Promise<ModeratedRequest> {
  const { moderation } = deps
  refuseScreening(deps, chatRequest)
  const kinds = new Set<string>()
  const getVerdict = createRequestPacer(request.signal)
  const screen = async (param: Param, parts: readonly (Message | PromptDefinition)[]) => {
    const screening = await getVerdict(moderation.screenSteps(parts))
    if (screening.verdict === 'block') throw blockedBy(param, screening)
    if (screening.secrets.length > 0 && moderation.secrets === 'block') throw secretsFound(param, screening.secrets)
    for (const kind of screening.secrets) kinds.add(kind)
  }
  await screen('messages', chatRequest.messages)
  const definitions = collectDefinitions(chatRequest)
  for (const definition of definitions) await screen(definition.param, [definition])
  const secrets = reportSecrets(deps, kinds, request.id)
  const clean = moderation.secrets === 'mask' && secrets.length > 0 ? masking(chatRequest) : chatRequest
  // The text that was checked here, or the masked one.
  const asked = clean === chatRequest ? definitions : collectDefinitions(clean)
  const texts = [...clean.messages.flatMap(partTexts), ...asked.flatMap(partTexts)].filter(text => text.trim() !== '')
  const { signal, verdict } = startExternalModeration(moderation, texts, request)
  return { request: clean, secrets, signal, verdict } as ModeratedRequest
}

/** Returns a function that runs steps of one request: in between, others run. Throws the error of an abort. */
function createRequestPacer(signal: RequestAbortSignal): <Result>(steps: Steps<Result>) => Promise<Result> {
  return createPacer(async () => {
    await nextTurn()
    if (signal.aborted) throw abortError(signal)
  })
}

/** Writes a warning with the kinds of secrets, if there are any, and returns them. */
function reportSecrets(
  { moderation, log }: ModerateDeps,
  kinds: ReadonlySet<string>,
  requestId: string,
): readonly string[] {
  const masked = String(moderation.secrets === 'mask')
  if (kinds.size > 0) log.warn('secrets_in_prompt', { request_id: requestId, kinds: [...kinds].join(', '), masked })
  return [...kinds]
}

/**
 * Moderates texts that are only embedded: by the pattern layer and for secrets, in process, and in parts, since a corpus must not
 * delay other requests. Throws `content_blocked` with the input's index.
 */
export async function moderateEmbedded(
  deps: ModerateDeps,
  chatRequest: ChatRequest,
  embedding: EmbeddingInputs,
  request: { readonly id: string; readonly signal: RequestAbortSignal },
): Promise<ModeratedRequest> {
  const { moderation } = deps
  const kinds = new Set<string>()
  const inputs: EmbeddingInput[] = []
  const texts: string[] = []
  const getVerdict = createRequestPacer(request.signal)
  for (const [index, text] of embedding.texts.entries()) {
    const place = inputPlace(embedding, index)
    const verdict = await getVerdict(moderation.embeddedSteps(text))
    if (verdict.verdict === 'block') throw blockedBy(place, verdict)
    const leaks = detectSecrets(text)
    if (moderation.secrets === 'block') refuseNamed(place, leaks)
    for (const { kind } of leaks) kinds.add(kind)
    const isMasked = leaks.length > 0 && moderation.secrets === 'mask'
    const sent = isMasked ? maskSecrets(text, leaks) : text
    texts.push(sent)
    inputs.push(isMasked ? sent : (embedding.inputs[index] ?? sent))
  }
  const secrets = reportSecrets(deps, kinds, request.id)
  const clean: ChatRequest = { ...chatRequest, embedding: { ...embedding, inputs, texts } }
  return { request: clean, secrets, signal: request.signal, verdict: null } as ModeratedRequest
}

/** Field of the request: `messages`, `tools`, `response_format`, or another one. */
type Param = string

/** Returns the error of a blocking verdict on a field of the request. */
function blockedBy(param: Param, { layer, category, rule }: Verdict): GatewayError {
  return refusal(param, layer ?? 'patterns', category ?? 'illegal', rule)
}

export type ScreeningDeps = { readonly moderation: Pick<Moderation, 'moderation'> }

/** Throws if the external moderation must not receive the request. Without it the request would evade the operator's checks. */
export function refuseScreening({ moderation }: ScreeningDeps, { demands }: Pick<ChatRequest, 'demands'>): void {
  const breach = demands === undefined ? null : (moderation.moderation?.findBreach(demands) ?? null)
  if (breach === null) return
  const remedy = 'The operator of this gateway declares its guarantees as `safety.moderation.policy` in GATEWAY_CONFIG.'
  throw constraintsUnmet(breach, 'No external moderation of this gateway', remedy)
}

/** Starts the external moderation without waiting for it. */
function startExternalModeration(
  { moderation }: ModerateDeps['moderation'],
  texts: readonly string[],
  request: { readonly id: string; readonly signal: RequestAbortSignal },
): Pick<ModeratedRequest, 'signal' | 'verdict'> {
  if (moderation === null) return { signal: request.signal, verdict: null }
  const ending = createRequestAbort()
  const leave = () => ending.abort(request.signal.reason)
  request.signal.addEventListener('abort', leave)
  if (request.signal.aborted) leave()
  const asking = new AbortController()
  ending.signal.addEventListener('abort', () => asking.abort())
  const verdict = moderation.send(texts, request.id, asking.signal).then(category => {
    if (category === null) return
    const error = refusal('messages', 'classifier', category, 'the configured moderation')
    ending.abort(error)
    throw error
  })
  // The awaiting step handles the rejection; a request that ended earlier has no such step.
  verdict.catch(() => {})
  return { signal: ending.signal, verdict }
}

/**
 * Returns the request with all secrets masked. Throws `content_blocked` if a name contains one, because calls refer to
 * it.
 */
function masking(request: ChatRequest): ChatRequest {
  const { tools, responseFormat } = request
  for (const { name } of tools) refuseNamed('tools', detectSecrets(name))
  if (responseFormat.type === 'json_schema') refuseNamed('response_format', detectSecrets(responseFormat.name))
  const clean = (text: string) => maskSecrets(text, detectSecrets(text))
  return {
    ...request,
    ...mapDefinitionTexts(request, clean),
    messages: request.messages.map(message => cleaned(message, clean)),
  }
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
        reasoning: message.reasoning === null ? null : clean(message.reasoning),
        // A signature covers the exact text, so a changed text cannot be sent back.
        ...(message.reasoningItems === undefined
          ? {}
          : { reasoningItems: message.reasoningItems.filter(item => clean(item.text) === item.text) }),
        toolCalls: message.toolCalls.map(call => ({ ...call, arguments: clean(call.arguments) })),
      }
    default:
      return message satisfies never
  }
}

function refuseNamed(param: Param, leaks: readonly DetectedSecret[]): void {
  if (leaks.length > 0) throw secretsFound(param, [...new Set(leaks.map(({ kind }) => kind))])
}

function secretsFound(param: Param, kinds: readonly string[]): GatewayError {
  return refusal(param, 'patterns', 'secrets', `found: ${kinds.join(', ')}`)
}

function refusal(param: Param, layer: string, category: string, detail: string | null): GatewayError {
  return new GatewayError('content_blocked', blockedMessage(places.get(param) ?? `The field \`${param}\``, category), {
    param,
    layer,
    category,
    ...(detail === null ? {} : { detail }),
  })
}

const places: ReadonlyMap<Param, string> = new Map([
  ['messages', 'The conversation'],
  ['tools', 'A tool’s definition'],
  ['response_format', 'The response format'],
])

function blockedMessage(place: string, category: string): string {
  switch (category) {
    case 'prompt_injection':
    case 'jailbreak':
      return `${place} contains text that tries to override the model’s instructions. Remove it (also check tool results and pasted text).`
    case 'malicious_url':
      return `${place} contains a URL on a blocklist. Remove it.`
    case 'secrets':
      return `${place} contains a secret such as an API key or card number. Remove it and rotate the secret.`
    default:
      return `${place} requests content that this service blocks (see \`category\`). Change the request.`
  }
}
