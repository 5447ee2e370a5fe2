/**
 * Simulated providers: one loopback server with the wire formats of OpenAI Chat Completions and Responses, Anthropic Messages,
 * Gemini generateContent and the embeddings of OpenAI and Gemini, so that the request path needs no special case. Prompts can control output and failures
 * (`directives.ts`).
 */
import { anthropicCount, anthropicFormat } from './anthropic.ts'
import { type CloudAccounts, type CloudIdentity, createCloudIdentity } from './cloud-accounts.ts'
import { cloudFormatFor } from './clouds.ts'
import { type Directives, directives, directivesFor, readDirectives } from './directives.ts'
import { embeddingFormatFor } from './embeddings.ts'
import { refusalReply, replyTo } from './faults.ts'
import { answerTo, simulatedUsageOf } from './generated-output.ts'
import { googleFormat } from './google.ts'
import { createKeyLimits, keyOf } from './key-limits.ts'
import { openaiFormat } from './openai.ts'
import { openaiResponsesFormat } from './openai-responses.ts'
import { createPromptCaches } from './prompt-cache.ts'
import { type Reply, send } from './reply.ts'
import type { RawRequest } from './request.ts'
import { searchReply } from './search.ts'
import { type ServerStats, startServer } from './server.ts'
import { isWireObject, mistake, type SimulatedFormat, type SimulatedResponse, type WireObject } from './wire-format.ts'

type SimulatorOptions = {
  /** Default: any free port. */
  readonly port?: number
  /** `now` in epoch milliseconds, used for creation times. */
  readonly clock: { now(): number }
  /** In [0, 1). Only IDs are random, never output. */
  readonly random: () => number
  /** Directives for every request that does not override them: a pace, for example. */
  readonly defaults?: Directives
  /** Accounts of the simulated clouds; absent = there are no clouds. */
  readonly clouds?: CloudAccounts
}

export type Simulator = {
  /** Base URLs for the official client libraries. Any non-empty API key is accepted. */
  readonly urls: {
    readonly openai: string
    readonly anthropic: string
    readonly google: string
    readonly search: string
    readonly azure: string
    readonly bedrock: string
    readonly vertex: string
  }
  /** Identity services of the clouds: their origin, and what they issued; null = there are no clouds. */
  readonly identity: (Pick<CloudIdentity, 'revokeTokens' | 'issued'> & { readonly url: string }) | null
  /** The directives that prompts may contain. */
  readonly directives: typeof directives
  stats(): ServerStats
  /** Resets open connections. */
  stop(): Promise<void>
}

/** Listens on 127.0.0.1. Rejects if the port is in use. */
export async function startSimulator({
  port = 0,
  clock,
  random,
  defaults = {},
  clouds,
}: SimulatorOptions): Promise<Simulator> {
  const mint = minter(random)
  const identity = clouds === undefined ? null : createCloudIdentity(clouds, clock, mint)
  const countUse = counter()
  const promptCaches = createPromptCaches(clock)
  const limitsOf = createKeyLimits(() => clock.now())
  const server = startServer({
    port,
    async handle(exchange) {
      return send(exchange, reply(exchange.request))
    },
  })
  const base = `http://127.0.0.1:${server.port}`

  function reply(request: RawRequest): Reply {
    if (request.path.startsWith('/searxng/search?')) return searchReply(request)
    const token = identity?.tokenReply(request) ?? null
    if (token !== null) return token
    // Other formats accept any key, so a cloud's path never falls through to them.
    const isCloud = /^\/(?:azure|bedrock|vertex)\//.test(request.path)
    const face = isCloud
      ? identity && cloudFormatFor(request, identity)
      : (faceFor(request.path) ?? embeddingFormatFor(request.path))
    if (face === null) return { ...nowhere, kind: 'http' }
    const createdAt = Math.floor(clock.now() / 1_000)
    const common = face.headers({ mint, createdAt })
    const refuse = (message: string, status = 400) =>
      refusalReply(face, face.failure(mistake(message, null, status), mint), common)
    if (request.method !== 'POST') return refuse(`Not allowed to ${request.method} on ${request.path}.`, 405)
    const body = parse(request.body)
    if (body === null) return refuse('We could not parse the JSON body of your request: a JSON object is expected.')
    const read = face.read(request, body, mint)
    if (read.kind === 'refusal') return refusalReply(face, read, common)

    const { question } = read
    const apiKey = keyOf(request)
    const groups = readDirectives(question.userTexts)
    if (groups.kind === 'problem') return refuse(groups.message)
    const directed = {
      ...defaults,
      ...directivesFor(groups.groups, { provider: face.provider, model: question.model, apiKey }, countUse),
    }
    const answers = Array.from({ length: question.choices }, (_, choice) => answerTo(question, directed, choice))
    const turn: SimulatedResponse = {
      question,
      directives: directed,
      answers,
      usage: simulatedUsageOf(question, directed, answers, tokens =>
        promptCaches.use(face.provider, request, body, tokens),
      ),
      served: directed.served ?? question.model,
      createdAt,
      mint,
      chunkCharacters: directed.chunk ?? face.chunkCharacters,
    }
    const { failure, headers } = limitsOf(`${face.provider} ${apiKey}`, face, turn)
    if (failure !== null) return refusalReply(face, face.failure(failure, mint), { ...common, ...headers })
    return replyTo({ ...face, headers: made => ({ ...face.headers(made), ...headers }) }, turn)
  }

  return {
    urls: {
      openai: `${base}/openai/v1`,
      anthropic: `${base}/anthropic`,
      google: `${base}/google`,
      search: `${base}/searxng`,
      azure: `${base}/azure`,
      bedrock: `${base}/bedrock`,
      vertex: `${base}/vertex/v1/projects/${clouds?.google.project ?? 'simulated'}/locations/global`,
    },
    identity: identity === null ? null : { ...identity, url: base },
    directives,
    stats: server.stats,
    async stop() {
      server.stop()
    },
  }
}

const nowhere = {
  status: 404,
  headers: { 'content-type': 'text/plain' },
  framing: 'length',
  headDelayMs: 0,
  pieces: [],
} as const

const countsTokens = anthropicCount()

/** Returns the format by the end of the path, so that base URLs may include any part of it. */
function faceFor(path: string): SimulatedFormat | null {
  const [route = ''] = path.split('?')
  if (route.endsWith('/chat/completions')) return openaiFormat
  if (route.endsWith('/responses')) return openaiResponsesFormat
  if (route.endsWith('/messages')) return anthropicFormat
  if (route.endsWith('/messages/count_tokens')) return countsTokens
  return /\/models\/[^/]+:(generateContent|streamGenerateContent)$/.test(route) ? googleFormat : null
}

function parse(body: Uint8Array): WireObject | null {
  try {
    const value: unknown = JSON.parse(new TextDecoder().decode(body))
    return isWireObject(value) ? value : null
  } catch {
    return null
  }
}

const alphabet = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'

function minter(random: () => number): SimulatedResponse['mint'] {
  return (prefix, length) => {
    let id = prefix
    for (let index = 0; index < length; index++) id += alphabet[Math.floor(random() * alphabet.length)]
    return id
  }
}

const keysCounted = 10_000

/** Creates a counter per key, including the current use; evicts the oldest keys. */
function counter(): (key: string) => number {
  const seen = new Map<string, number>()
  return key => {
    const uses = (seen.get(key) ?? 0) + 1
    seen.delete(key)
    seen.set(key, uses)
    const [oldest] = seen.size > keysCounted ? seen.keys() : []
    if (oldest !== undefined) seen.delete(oldest)
    return uses
  }
}
