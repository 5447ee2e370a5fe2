/** Pattern layer and detected secrets for inputs that are only embedded, in process. */
import type { EmbeddingInput } from '../../core/embeddings/embeddings-request.ts'
import { placeOf } from '../../core/embeddings/embeddings-request.ts'
import { GatewayError } from '../../core/validation/errors.ts'
import type { Moderation } from '../../text/moderation/layers/moderation.ts'
import { createPacer, nextTurn } from '../../text/moderation/pacing.ts'
import { maskSecrets } from '../../text/moderation/secret-detection.ts'
import type { PreparedEmbeddings } from './prepare.ts'

export type ModerateInputsDeps = {
  readonly safety: Pick<Moderation, 'embeddedSteps' | 'secrets' | 'leaksIn'>
  readonly log: { warn(event: string, fields: Readonly<Record<string, string | number>>): void }
}

export type ModeratedInputs = {
  readonly inputs: readonly EmbeddingInput[]
  /** Texts to send where a host takes no token IDs. */
  readonly texts: readonly string[]
  /** Kinds of secrets found. */
  readonly secrets: readonly string[]
}

/** Throws `content_blocked` with the input's index. Masks secrets if the operator configured it. */
export async function moderateInputs(
  { safety, log }: ModerateInputsDeps,
  { request, texts }: PreparedEmbeddings,
  requestId: string,
): Promise<ModeratedInputs> {
  const kinds = new Set<string>()
  const inputs: EmbeddingInput[] = []
  const clean: string[] = []
  // A corpus must not delay other requests.
  const verdictOf = createPacer(nextTurn)
  for (const [index, text] of texts.entries()) {
    const place = placeOf(request, index)
    const { verdict, category, rule } = await verdictOf(safety.embeddedSteps(text))
    if (verdict === 'block') throw blocked(place, category ?? 'illegal', rule)
    const leaks = safety.leaksIn(text)
    if (leaks.length > 0 && safety.secrets === 'block') {
      const found = [...new Set(leaks.map(({ kind }) => kind))]
      throw blocked(place, 'secrets', `found: ${found.join(', ')}`)
    }
    for (const { kind } of leaks) kinds.add(kind)
    const isMasked = leaks.length > 0 && safety.secrets === 'mask'
    const sent = isMasked ? maskSecrets(text, leaks) : text
    clean.push(sent)
    inputs.push(isMasked ? sent : (request.inputs[index] ?? sent))
  }
  const secrets = [...kinds]
  if (secrets.length > 0)
    log.warn('secrets_in_prompt', {
      request_id: requestId,
      kinds: secrets.join(', '),
      masked: String(safety.secrets === 'mask'),
    })
  return { inputs, texts: clean, secrets }
}

function blocked(place: string, category: string, detail: string | null): GatewayError {
  const problem =
    category === 'secrets'
      ? 'contains a key, a card number or another secret. Remove it, and replace the secret'
      : category === 'prompt_injection' || category === 'jailbreak'
        ? "contains text that tries to override a model's instructions. Remove it"
        : 'contains text that this service does not process. Remove it'
  return new GatewayError('content_blocked', `\`${place}\` ${problem}.`, {
    param: place,
    layer: 'patterns',
    category,
    ...(detail === null ? {} : { detail }),
  })
}
