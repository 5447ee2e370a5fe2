import { type Static, Type } from '@sinclair/typebox'
import { Elysia } from 'elysia'
import type { Message } from '../../core/chat/chat.ts'
import type { RateLimiterFactory } from '../../core/limits/rate-limits.ts'
import { nullable, parseJson, validate } from '../../core/validation/validate.ts'
import { answerHeld } from '../../http/body.ts'
import type { ChatRouteDeps } from '../../http/chat-handler.ts'
import { enforceAccountLimit } from '../../http/rate-limits.ts'
import { policies, withRouteDocs } from '../../http/route-docs.ts'
import { namedSchema, share, text } from '../../http/schemas.ts'
import type { Moderation } from '../../text/moderation/layers/moderation.ts'
import { createPacer, nextTurn } from '../../text/moderation/text-moderator.ts'
import type { Verdict } from '../../text/moderation/verdict.ts'

/** Converts verdicts of the gateway's moderation into results of OpenAI's API. */

/** Schemas of `POST /v1/moderations`, in the format of OpenAI's clients. */

/** Maximum number of texts per request. */
const maximumTexts = 256

const textPart = Type.Object(
  {
    type: Type.Literal('text', { unmatched: 'unsupported_parameter', description: '"text": images are not moderated' }),
    text: Type.String(),
  },
  { additionalProperties: true },
)

const moderationsSchema = Type.Object(
  {
    input: Type.Union([
      Type.String(),
      Type.Array(Type.String(), { minItems: 1, maxItems: maximumTexts }),
      Type.Array(textPart, { minItems: 1, maxItems: maximumTexts }),
    ]),
    model: nullable(Type.String({ maxLength: 256, description: 'without effect: the gateway has one moderation' })),
  },
  { additionalProperties: true, title: 'ModerationRequest' },
)
type ModerationsBody = Static<typeof moderationsSchema>

const moderation = namedSchema('Moderation', {
  flagged: Type.Boolean(),
  categories: Type.Record(Type.String(), Type.Boolean(), {
    description: "OpenAI's categories; `gateway/…` for those that OpenAI has no name for",
  }),
  category_scores: Type.Record(Type.String(), share, {
    description: 'of the flagged category; the others are 0, since the classifier has one score for all',
  }),
  category_applied_input_types: Type.Record(Type.String(), Type.Array(Type.Literal('text'))),
  gateway_score: Type.Number({
    minimum: 0,
    maximum: 1,
    description: 'probability that chat would block the text, over all categories',
    examples: [0.02],
  }),
})
type ModerationResult = Static<typeof moderation>

const moderationsResponseSchema = namedSchema('ModerationResponse', {
  id: text('modr-5f0c1b7ae94d42d8'),
  model: text('gateway-moderation'),
  results: Type.Array(moderation),
})

const openaiCategories = [
  'harassment',
  'harassment/threatening',
  'hate',
  'hate/threatening',
  'illicit',
  'illicit/violent',
  'self-harm',
  'self-harm/instructions',
  'self-harm/intent',
  'sexual',
  'sexual/minors',
  'violence',
  'violence/graphic',
] as const

/** OpenAI's names for categories of the gateway. */
const openaiNames: ReadonlyMap<string, readonly string[]> = new Map([
  ['weapons', ['illicit', 'illicit/violent']],
  ['drugs', ['illicit']],
  ['cybercrime', ['illicit']],
  ['fraud', ['illicit']],
  ['illegal', ['illicit']],
  ['minors', ['sexual', 'sexual/minors']],
  ['violence', ['violence']],
  ['self_harm', ['self-harm']],
  ['sexual', ['sexual']],
  ['hate', ['hate']],
  ['harassment', ['harassment']],
])

/** Present in every result, so that clients need not test for them. */
const ownCategories = ['jailbreak', 'prompt_injection', 'malicious_url', 'secrets', 'privacy', 'misinformation']

/** Returns the result for one text. `holdsSecrets`: the operator blocks secrets, and the text contains one. */
export function toModerationResult(verdict: Verdict, holdsSecrets: boolean): ModerationResult {
  const found = new Set<string>(holdsSecrets ? ['gateway/secrets'] : [])
  if (verdict.verdict === 'block') {
    const category = verdict.category ?? 'illegal'
    for (const name of openaiNames.get(category) ?? [`gateway/${category}`]) found.add(name)
  }
  // A match of a rule or blocklist has score 1: the score in its verdict is the classifier's.
  const score = verdict.layer === 'classifier' ? verdict.score : 1
  const names = new Set([...openaiCategories, ...ownCategories.map(name => `gateway/${name}`), ...found])
  const all = [...names]
  return {
    flagged: found.size > 0,
    categories: Object.fromEntries(all.map(name => [name, found.has(name)])),
    category_scores: Object.fromEntries(all.map(name => [name, found.has(name) ? score : 0])),
    category_applied_input_types: Object.fromEntries(all.map(name => [name, ['text' as const]])),
    gateway_score: found.size > 0 ? score : verdict.score,
  }
}

/** Moderation is free and does not count toward the account's limits, so it has its own rate limit. */
const limit = { perMinute: 120, burst: 60 }
/** A request may have this many characters; each further share of as many counts, so that the longest request fits into the burst. */
const charactersPerShare = 65_536
const shares = { perMinute: 64, burst: 128 }

type ModerationsRouteDeps = Pick<ChatRouteDeps, 'getCaller' | 'bodies' | 'clock' | 'newRequestId'> & {
  readonly moderation: Pick<Moderation, 'screenSteps' | 'secrets'>
  readonly limits: RateLimiterFactory
}

/** `POST /v1/moderations`: the gateway's own moderation, in process. Nothing is billed, recorded or sent to a provider. */
export function moderations(deps: ModerationsRouteDeps) {
  const limiter = deps.limits('moderations', limit)
  const shareLimiter = deps.limits('moderated_characters', shares)
  const countShare = (accountId: string) =>
    enforceAccountLimit(shareLimiter, accountId, {
      perMinute: shares.perMinute * charactersPerShare,
      what: 'characters of moderations',
    })

  return new Elysia({ name: 'moderations' }).post(
    '/v1/moderations',
    ({ request }) =>
      answerHeld(deps, request, {
        admit: ({ accountId }) => enforceAccountLimit(limiter, accountId, { ...limit, what: 'moderations' }),
        async answer(text, { accountId }) {
          const texts = getTexts(validate(moderationsSchema, parseJson(text)))
          const results = await moderate(deps.moderation, texts, () => countShare(accountId))
          const id = deps.newRequestId().replace('req_', 'modr-')
          const body = { id, model: 'gateway-moderation', results }
          return Response.json(body, { headers: { 'cache-control': 'no-store' } })
        },
      }),
    {
      parse: 'none',
      ...withRouteDocs(policies.apiKey, {
        summary: 'Moderation of texts',
        description:
          "The gateway's own moderation in OpenAI's format: the in-process checks of a chat with this text as its prompt. Nothing " +
          'is billed, recorded or sent to a provider.',
        body: moderationsSchema,
        examples: {
          'one text': { input: 'How do I sharpen a kitchen knife?' },
          'several texts': { model: 'omni-moderation-latest', input: ['Good morning.', 'Good night.'] },
        },
        answer: moderationsResponseSchema,
        errors: ['unsupported_parameter', 'requests_per_minute_exceeded'],
      }),
    },
  )
}

/** Returns the texts to moderate. The parts of one multimodal input are one text. */
function getTexts({ input }: ModerationsBody): readonly string[] {
  if (typeof input === 'string') return [input]
  const parts = input.flatMap(part => (typeof part === 'string' ? [] : [part.text]))
  return parts.length > 0 ? [parts.join('\n')] : input.filter(part => typeof part === 'string')
}

/** Calls `countShare` before each further share of characters, so that a rejected text is not read to its end. */
async function moderate(
  { screenSteps, secrets }: ModerationsRouteDeps['moderation'],
  texts: readonly string[],
  countShare: () => Promise<void>,
) {
  const getVerdict = createPacer(nextTurn)
  const results = []
  let characters = 0
  let counted = charactersPerShare
  for (const text of texts) {
    characters += text.length
    for (; counted < characters; counted += charactersPerShare) await countShare()
    const message: Message = { role: 'user', content: [{ type: 'text', text }], name: null }
    const verdict = await getVerdict(screenSteps([message]))
    const holdsSecrets = secrets === 'block' && verdict.secrets.length > 0
    results.push(toModerationResult(verdict, holdsSecrets))
  }
  return results
}
