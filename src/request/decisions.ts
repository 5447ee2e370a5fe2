/** Requests for decisions: the plan of one before admission, and the judges of this process. There is no routing. */
import { type ChatRequest, type Message, queryTypes } from '../core/chat/chat.ts'
import { messageTexts } from '../core/chat/request-texts.ts'
import type { Caller } from '../core/limits/plans.ts'
import { toModel } from '../core/models/configured-models.ts'
import rows from '../core/models/decision-models.json' with { type: 'json' }
import { type Catalog, fullName, type Model } from '../core/models/models.ts'
import { constraintsUnmet } from '../core/policy/constraints.ts'
import { GatewayError } from '../core/validation/errors.ts'
import { invalidField } from '../core/validation/validate.ts'
import { isModelAllowed, modelNotAllowed } from '../models/allowed-models.ts'
import { getLevel, type LevelShares, levels } from '../models/capability-levels.ts'
import type { ConfiguredProvider } from '../providers/configured-provider.ts'
import type { AdapterRequest, Provider } from '../providers/provider.ts'
import type { PromptAnalyzer } from '../text/analysis/prompt-analysis.ts'
import type { Moderation } from '../text/moderation/layers/moderation.ts'
import { readLastTurn } from '../text/segments/conversation.ts'
import { estimateInputTokens } from '../text/tokens/tokens.ts'
import calibration from '../text/weights/decisions.json' with { type: 'json' }
import { checkPaid } from './admit.ts'
import { type PlanEmbeddingsDeps, planFor } from './plan-embeddings.ts'
import { modelBreach } from './routing/constrained.ts'

export type PlanDecisionsDeps = PlanEmbeddingsDeps &
  LocalJudges & {
    readonly catalog: Pick<Catalog, 'resolve'>
    /** The wire format in which answers of this process are read. */
    readonly decisionWire: Provider
  }

/** The judges of this process. */
const local = toModel('gateway', rows.local)
/** Decisions have a price of their own, in which cached input is free. Read on 2026-11-29. */
const luna = toModel('openai', rows.luna, 'vercel.com/ai-gateway/models/openai/gpt-6-luna-decisions')

/**
 * Resolves the model. Throws `model_not_found`, `forbidden`, `constraints_unmet`, `payment_required` or `account_paused`,
 * `context_length_exceeded`, and `invalid_request` for a question that the gateway's own judges do not know.
 */
export function planDecisions(deps: PlanDecisionsDeps, caller: Caller, asked: ChatRequest) {
  const model = findModel(deps, asked.model ?? '')
  if (caller.models !== undefined && !isModelAllowed(caller.models, fullName(model)))
    throw modelNotAllowed(caller.models)
  const breach = model === local ? null : modelBreach(deps.endpoints, model, asked.demands)
  if (breach !== null)
    throw constraintsUnmet(
      breach,
      `No host of ${fullName(model)}`,
      `${fullName(local)} meets all constraints, for the questions that it can answer.`,
    )
  // As `admit` does, before the work on a large body.
  checkPaid(deps, caller)
  const inputTokens = estimateInputTokens(asked)
  if (inputTokens > model.contextWindow)
    throw new GatewayError(
      'context_length_exceeded',
      `The input has about ${inputTokens} tokens. The context length of ${fullName(model)} is ${model.contextWindow} tokens. Shorten it.`,
      { param: 'input' },
    )
  if (model !== local) return { ...unrouted, request: asked, plan: planFor(deps, [model], inputTokens) }
  // Judges read what no model will follow, so moderation does not refuse it: the answer says what it is.
  const endpoint = localEndpoint(deps.decisionWire, decideHere(deps, asked), inputTokens)
  const plan = planFor({ ...deps, endpoints: { get: () => endpoint } }, [model], inputTokens)
  return { ...unrouted, request: { ...asked, messages: [] }, plan }
}

/** Nothing of it is learned or enhanced. */
const unrouted = { promptDigest: '', enhancement: null }

function findModel({ catalog, endpoints }: PlanDecisionsDeps, name: string): Model {
  const wanted = name.toLowerCase()
  if (wanted === fullName(local)) return local
  const isLuna = [luna.id, ...luna.aliases].some(id => wanted === id || wanted === fullName({ ...luna, id }))
  if (isLuna && endpoints.get(luna.provider) !== undefined) return luna
  const model = catalog.resolve(name)
  // OpenAI itself serves the model above; a compatible server decides which of its models answer.
  const isServed = model !== null && endpoints.get(model.provider)?.provider.decisions !== undefined
  if (isServed && model.provider !== luna.provider) return model
  const known = endpoints.get(luna.provider) === undefined ? fullName(local) : `${fullName(local)} or ${fullName(luna)}`
  const reason = model === null ? 'Unknown decision model.' : `${fullName(model)} does not answer decisions here.`
  throw new GatewayError('model_not_found', `${reason} Use ${known}, or a model of an OpenAI-compatible server.`, {
    param: 'model',
  })
}

const access = { baseUrl: '', apiKey: null }

/** Gives the answers that were found before admission. */
function localEndpoint(wire: Provider, answers: readonly object[], inputTokens: number): ConfiguredProvider {
  const usage = { input_tokens: inputTokens, output_tokens: 0 }
  const answered = { answers, model: fullName(local), usage }
  const toRequest = () => ({ url: '', headers: {}, body: '', droppedParameters: [], answered })
  const decisions = (question: AdapterRequest) => ({ ...(wire.decisions?.(question) ?? wire), toRequest })
  return { id: local.provider, provider: { ...wire, decisions }, access, simulated: false, receiver: null }
}

type LocalJudges = {
  readonly read: PromptAnalyzer
  readonly moderation: Pick<Moderation, 'screenMessages'>
  readonly config: { readonly routing: LevelShares }
}

/** Maps a score of 0 to 1 to the measured share of true cases near it: equal steps, linear between them. */
function calibrated(table: readonly number[], score: number): number {
  const at = Math.min(1, Math.max(0, score)) * (table.length - 1)
  const below = Math.floor(at)
  const [low = 0, high = low] = table.slice(below, below + 2)
  return low + (high - low) * (at - below)
}

/** Returns weights of named options; a predicate has one, `yes`. */
type Judge = (messages: readonly Message[], deps: LocalJudges) => Readonly<Record<string, number>>

const { harmful, injection, needsCurrent, segment, typeExponent, language: languageShare, levels: shares } = calibration

const contains =
  (kind: 'code' | 'material'): Judge =>
  messages => {
    const { segments, text } = readLastTurn(messages)
    return { yes: calibrated(segment, segments[kind] / Math.max(1, text.length)) }
  }

/** What the gateway decides itself, by the type and the name of the question. */
const judges: Readonly<Record<'predicate' | 'choice' | 'score', Readonly<Record<string, Judge>>>> = {
  predicate: {
    harmful: (messages, { moderation }) => {
      const { verdict, score } = moderation.screenMessages(messages)
      return { yes: calibrated(harmful, verdict === 'block' ? 1 : score) }
    },
    // The texts as those of a page or tool result, in which orders to the model are an injection.
    prompt_injection: (messages, { moderation }) => {
      const material = messages.map(
        (message): Message => ({ role: 'tool', callId: 'text', text: messageTexts(message).join('\n') }),
      )
      const isFound = moderation.screenMessages(material).verdict === 'block'
      return { yes: isFound ? injection.found : injection.notFound }
    },
    needs_current_data: (messages, { read }) => ({ yes: calibrated(needsCurrent, read(messages).needsCurrentScore) }),
    contains_code: contains('code'),
    contains_material: contains('material'),
  },
  choice: {
    query_type: (messages, { read }) => {
      const scores = read(messages).queryTypeScores
      return Object.fromEntries(queryTypes.map(type => [type, scores[type] ** typeExponent]))
    },
    language: (messages, { read }) => ({ [read(messages).language]: languageShare }),
  },
  score: {
    difficulty: (messages, { read, config }) => shares[getLevel(read(messages).strongGain, config.routing)],
  },
}

/** Returns the answers. Throws `invalid_request` with the question that no judge here can answer. */
function decideHere(deps: LocalJudges, { source, messages }: ChatRequest): readonly object[] {
  const questions: readonly Question[] = Array.isArray(source?.fields.questions) ? source.fields.questions : []
  const known = new Map<Judge, ReturnType<Judge>>()
  return questions.map((question, index) => {
    const wanted = String(question.name ?? question.instructions)
    const judge = Object.hasOwn(judges[question.type], wanted) ? judges[question.type][wanted] : undefined
    if (judge === undefined) throw invalidField(`questions.${index}.name`, decidable)
    const weights = known.get(judge) ?? judge(messages, deps)
    known.set(judge, weights)
    return answer(question, weights, index)
  })
}

type Question = {
  readonly type: keyof typeof judges
  readonly name?: string | null
  readonly instructions: unknown
  readonly choices?: readonly { readonly value: string | boolean }[]
  readonly levels?: readonly { readonly label: string }[]
}

function answer(question: Question, weights: ReturnType<Judge>, index: number) {
  const { type, name = null, choices = [], levels: given = [] } = question
  if (type === 'predicate') return { type, name, probability: rounded(weights.yes ?? 0) }
  const labels = given.map(({ label }) => label)
  if (type === 'score' && (labels.length !== levels.length || labels.some((label, at) => label !== levels[at])))
    throw invalidField(`questions.${index}.levels`, `must be ${levels.join(', ')}`)
  const options = type === 'choice' ? choices.map(({ value }) => value) : labels
  if (new Set(options).size !== options.length) throw invalidField(`questions.${index}.choices`, 'must differ')
  const getWeight = (option: string) => (Object.hasOwn(weights, option) ? weights[option] : undefined)
  const probabilities = normalized(options.map(option => getWeight(String(option)) ?? 0))
  const confidence = Math.max(...probabilities)
  const probability = (at: number) => probabilities[at]
  if (type === 'score') {
    const score = rounded(probabilities.reduce((sum, share, at) => sum + share * at, 0))
    const all = labels.map((label, value) => ({ label, value, probability: probability(value) }))
    return { type, name, score, confidence, probabilities: all }
  }
  const all = options.map((value, at) => ({ value, probability: probability(at) }))
  return { type, name, choice: options[probabilities.indexOf(confidence)], confidence, probabilities: all }
}

const decided = Object.entries(judges).map(([type, known]) => `${type} ${Object.keys(known).join(', ')}`)
const decidable = `must be a question that gateway/local can answer: ${decided.join('; ')}. Name another model for other questions`

/** What the judge gives to options that the question lacks is shared by its options. */
function normalized(weights: readonly number[]): readonly number[] {
  const sum = weights.reduce((total, weight) => total + weight, 0)
  const rest = Math.max(0, 1 - sum)
  const all = weights.map(weight => weight + rest / weights.length)
  const total = Math.max(sum, 1)
  return all.map(weight => rounded(weight / total))
}

const rounded = (value: number) => Math.round(value * 10_000) / 10_000
