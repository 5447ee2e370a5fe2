/**
 * Google Vertex AI: Gemini as on Gemini's own API, Claude with Anthropic's own Messages body. `Access.authorizer` adds a
 * token of the service account.
 */
import type { SourceBody } from '../core/chat/chat.ts'
import type { Model } from '../core/models/models.ts'
import { readAnthropicFailure } from './anthropic/failure.ts'
import { countRequest, toHostedRequest } from './anthropic/request.ts'
import { withMembers } from './anthropic/source-body.ts'
import { anthropic } from './anthropic.ts'
import { readGoogleFailure } from './google/failure.ts'
import { google } from './google.ts'
import { getText, objectIn, record } from './json.ts'
import type { Access, Provider } from './provider.ts'

const version = 'vertex-2023-10-16'

// Vertex AI embeds by another API than Gemini's own.
const { embeddings: _, listModels: _list, ...ownGemini } = google
const gemini: Provider = {
  ...ownGemini,
  toRequest(question, access) {
    const request = ownGemini.toRequest(question, { baseUrl: '', apiKey: null })
    const method = request.url.slice(request.url.lastIndexOf(':') + 1)
    return { ...request, url: getUrl(access, 'google', question.model.id, method) }
  },
}

const claude: Provider = {
  ...anthropic,
  toRequest(question, access) {
    const request = toHostedRequest(question, { version, namesStream: true, bodyBetas: null })
    const method = question.stream ? 'streamRawPredict' : 'rawPredict'
    return { ...request, url: getUrl(access, 'anthropic', question.model.id, method) }
  },
  // Google refuses in its own form, the model behind it in Anthropic's.
  readFailure(status, headers, body) {
    const isGoogles = getText(record(objectIn(body.replace(/^\s*\[|\]\s*$/g, ''))?.error).status) !== ''
    return (isGoogles ? readGoogleFailure : readAnthropicFailure)(status, headers, body)
  },
}

/** The adapter. `Access.baseUrl` ends with the project and the location. */
export const vertex: Provider = {
  ...gemini,
  formFor: ({ model }) => (isClaude(model) ? claude : gemini),
  takesSource: model => (isClaude(model) ? ['messages'] : ['gemini']),
  cachesMarkedInput: isClaude,
  count: {
    toRequest: (source: SourceBody, model: Model, access: Access) => {
      if (!isClaude(model)) return null
      const { body } = countRequest(source, model, { baseUrl: '', apiKey: null })
      return {
        url: getUrl(access, 'anthropic', 'count-tokens', 'rawPredict'),
        headers: { 'content-type': 'application/json' },
        body: withMembers(body, { anthropic_version: version }),
      }
    },
    read: body => anthropic.count?.read(body) ?? null,
  },
}

function isClaude({ id, provider }: Pick<Model, 'id' | 'provider'>): boolean {
  return provider === 'anthropic' || /^claude-/.test(id)
}

function getUrl({ baseUrl }: Access, publisher: 'google' | 'anthropic', id: string, method: string): string {
  // Only the beta version has the IDs of calls and JSON schemas that Gemini's own API has.
  const base = publisher === 'google' ? baseUrl.replace('/v1/projects/', '/v1beta1/projects/') : baseUrl
  // `@` separates a version of a model, which Google writes as it is.
  return `${base}/publishers/${publisher}/models/${encodeURIComponent(id).replaceAll('%40', '@')}:${method}`
}
