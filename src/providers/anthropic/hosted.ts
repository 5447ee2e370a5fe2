/**
 * Claude on another company's cloud: the Messages body as Anthropic takes it, with the model in the URL and the version
 * in the body. The client's own text stays, so that prompt caches and signatures stay valid.
 */
import type { Access, AdapterRequest, ProviderRequest } from '../provider.ts'
import { toAnthropicRequest } from './request.ts'
import { withMembers } from './source-body.ts'

type Host = {
  /** `anthropic_version` of the body. */
  readonly version: string
  /** Whether the body says that the response is streamed; otherwise the URL does. */
  readonly namesStream: boolean
  /** Betas that the host takes in the body; null = in the header, like Anthropic itself. */
  readonly bodyBetas: RegExp | null
}

/** The request without its URL. */
type HostedRequest = Omit<ProviderRequest, 'url'>

const unaddressed: Access = { baseUrl: '', apiKey: null }

/** Returns the request for a host. */
export function toHostedRequest(question: AdapterRequest, host: Host): HostedRequest {
  const { headers, body, droppedParameters } = toAnthropicRequest(question, unaddressed)
  const betas = headers['anthropic-beta'] ?? ''
  const inBody = host.bodyBetas === null ? [] : namesIn(betas).filter(name => host.bodyBetas?.test(name))
  return {
    headers: {
      'content-type': 'application/json',
      ...(host.bodyBetas === null && betas !== '' && { 'anthropic-beta': betas }),
    },
    body: withMembers(body, {
      model: undefined,
      anthropic_version: host.version,
      // A mark of the gateway for the whole body, which hosts do not take. Marks at blocks they take.
      ...(question.cacheMarks === undefined ? {} : { cache_control: undefined }),
      ...(host.namesStream ? {} : { stream: undefined }),
      ...(inBody.length > 0 && { anthropic_beta: inBody }),
    }),
    droppedParameters,
  }
}

function namesIn(header: string): readonly string[] {
  return header
    .split(',')
    .map(name => name.trim())
    .filter(name => name !== '')
}
