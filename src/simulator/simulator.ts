/**
 * Simulated providers: one loopback server with the wire formats of OpenAI Chat Completions and Responses, Anthropic Messages,
 * Gemini generateContent and the embeddings of OpenAI and Gemini, so that the request path needs no special case. Prompts can control output and failures
 * (`directives.ts`).
 */
import { anthropicCount, anthropicFormat } from './anthropic.ts'
import { decisionsFormat } from './decisions.ts'
import { directives } from './directives.ts'
import { findEmbeddingsFormat } from './embeddings.ts'
import { googleFormat } from './google.ts'
import { openaiFormat } from './openai.ts'
import { openaiResponsesFormat } from './openai-responses.ts'
import { jsonReply, type Reply, send } from './reply.ts'
import { createResponder, type SimulatorParts } from './responder.ts'
import { type RawRequest, type ServerStats, startServer } from './server.ts'
import type { SimulatedFormat } from './wire-format.ts'

export type Simulator = {
  /** Base URLs for the official client libraries. Any non-empty API key is accepted. */
  readonly urls: {
    readonly openai: string
    readonly anthropic: string
    readonly google: string
    readonly search: string
  }
  /** The directives that prompts may contain. */
  readonly directives: typeof directives
  stats(): ServerStats
  /** Resets open connections. */
  stop(): Promise<void>
}

/** Listens on a free port of 127.0.0.1. */
export async function startSimulator(parts: SimulatorParts): Promise<Simulator> {
  const respond = createResponder(parts)
  const server = startServer(exchange => {
    const { request } = exchange
    const [path = ''] = request.path.split('?')
    return send(exchange, path === '/searxng/search' ? createSearchReply(request) : respond(request, findFormat(path)))
  })
  return {
    urls: {
      openai: `${server.url}/openai/v1`,
      anthropic: `${server.url}/anthropic`,
      google: `${server.url}/google`,
      search: `${server.url}/searxng`,
    },
    directives,
    stats: server.stats,
    async stop() {
      server.stop()
    },
  }
}

/** Returns the format by the end of the path, so that base URLs may include any part of it. */
function findFormat(path: string): SimulatedFormat | null {
  if (path.endsWith('/chat/completions')) return openaiFormat
  if (path.endsWith('/responses')) return openaiResponsesFormat
  if (path.endsWith('/messages')) return anthropicFormat
  if (path.endsWith('/messages/count_tokens')) return anthropicCount
  if (/\/models\/[^/]+:(generateContent|streamGenerateContent)$/.test(path)) return googleFormat
  return path.endsWith('/decisions') ? decisionsFormat() : findEmbeddingsFormat(path)
}

/** Answers `GET /search?format=json` as SearXNG does, with two labeled results. */
function createSearchReply({ method, path }: RawRequest): Reply {
  const parameters = new URL(path, 'http://127.0.0.1').searchParams
  const query = parameters.get('q') ?? ''
  if (method !== 'GET') return jsonReply(405, { error: 'method not allowed' })
  if (parameters.get('format') !== 'json') return jsonReply(403, { error: 'forbidden' })
  if (query === '') return jsonReply(400, { error: 'no query' })
  const results = [1, 2].map(rank => ({
    url: `https://simulated.example/result-${rank}`,
    title: `Simulated result ${rank}`,
    content: `This is result ${rank} of a simulated search for: ${query}`,
    engine: 'simulated',
    score: 1 / rank,
    category: 'general',
    publishedDate: null,
  }))
  return jsonReply(200, {
    query,
    number_of_results: 0,
    results,
    answers: [],
    suggestions: [],
    unresponsive_engines: [],
  })
}
