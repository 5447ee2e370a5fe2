/** A simulated SearXNG with two labeled results in its real format. */
import { piece, type Reply } from './reply.ts'
import type { RawRequest } from './request.ts'

/** Answers `GET /search?format=json`, and other requests like SearXNG: 403 for another format, 400 without a query. */
export function searchReply({ method, path }: RawRequest): Reply {
  const parameters = new URL(path, 'http://127.0.0.1').searchParams
  const query = parameters.get('q') ?? ''
  if (method !== 'GET') return answer(405, { error: 'method not allowed' })
  if (parameters.get('format') !== 'json') return answer(403, { error: 'forbidden' })
  if (query === '') return answer(400, { error: 'no query' })
  return answer(200, {
    query,
    number_of_results: 0,
    results: [1, 2].map(rank => ({
      url: `https://simulated.example/result-${rank}`,
      title: `Simulated result ${rank}`,
      content: `This is result ${rank} of a simulated search for: ${query}`,
      engine: 'simulated',
      engines: ['simulated'],
      positions: [rank],
      score: 1 / rank,
      category: 'general',
      template: 'default.html',
      publishedDate: null,
    })),
    answers: [],
    corrections: [],
    infoboxes: [],
    suggestions: [],
    unresponsive_engines: [],
  })
}

function answer(status: number, body: object): Reply {
  return {
    kind: 'http',
    status,
    headers: { 'content-type': 'application/json' },
    framing: 'length',
    headDelayMs: 0,
    pieces: [piece(JSON.stringify(body))],
  }
}
