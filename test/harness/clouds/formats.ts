/** The simulated clouds by path: their checks of credentials, and their wire formats. */
import { anthropicCount, anthropicFormat } from '../../../src/simulator/anthropic.ts'
import { googleFormat } from '../../../src/simulator/google.ts'
import { openaiFormat } from '../../../src/simulator/openai.ts'
import { openaiResponsesFormat } from '../../../src/simulator/openai-responses.ts'
import type { RawRequest } from '../../../src/simulator/server.ts'
import { mistake, type SimulatedFormat } from '../../../src/simulator/wire-format.ts'
import { awsFailure, converseFormat, invokeFormat } from './bedrock.ts'
import type { CloudIdentity } from './identity.ts'

type Cloud = 'aws' | 'azure' | 'google'

/** Returns the format of a cloud's path, which first checks the request's credentials; null = no path of a cloud. */
export function findCloudFormat(request: RawRequest, identity: CloudIdentity): SimulatedFormat | null {
  const [route = ''] = request.path.split('?')
  const bedrock = /^\/bedrock\/model\/([^/]+)\/(invoke|converse)(-with-response-stream|-stream)?$/.exec(route)
  if (bedrock !== null) {
    const [, id = '', form, streaming] = bedrock
    const format = form === 'invoke' ? invokeFormat : converseFormat
    return checked('aws', identity, format(decodeURIComponent(id), streaming !== undefined))
  }
  if (route.startsWith('/azure/openai/')) return azureFormat(request, route, identity)
  const vertex =
    /^\/vertex\/(v1beta1|v1)\/projects\/[^/]+\/locations\/[^/]+\/publishers\/(google|anthropic)\/models\/([^/]+):(\w+)$/.exec(
      route,
    )
  if (vertex === null) return null
  const [, version, publisher, id = '', method = ''] = vertex
  if ((version === 'v1beta1') !== (publisher === 'google')) return null
  if (publisher === 'google')
    return checked('google', identity, withHeaders(googleFormat, { 'x-goog-api-key': 'token' }))
  return checked('google', identity, vertexClaude(decodeURIComponent(id), method))
}

/** Azure: deployments take the model from the URL and need an API version; v1 names the model in the body. */
function azureFormat({ path }: RawRequest, route: string, identity: CloudIdentity): SimulatedFormat | null {
  const bearer = { authorization: 'Bearer checked' }
  if (route === '/azure/openai/v1/chat/completions')
    return checked('azure', identity, withHeaders(azureChat(null), bearer))
  if (route === '/azure/openai/v1/responses')
    return checked('azure', identity, withHeaders(openaiResponsesFormat, bearer))
  const [, deployment] = /^\/azure\/openai\/deployments\/([^/]+)\/chat\/completions$/.exec(route) ?? []
  if (deployment === undefined || !/[?&]api-version=\d{4}-\d{2}-\d{2}/.test(path)) return null
  return checked('azure', identity, withHeaders(azureChat(decodeURIComponent(deployment)), bearer))
}

const harmless = { filtered: false, severity: 'safe' }
const filterResults = { hate: harmless, self_harm: harmless, sexual: harmless, violence: harmless }

/** OpenAI's format with the results of Azure's content filters. */
function azureChat(deployment: string | null): SimulatedFormat {
  return {
    ...openaiFormat,
    read: (request, body, mint) =>
      openaiFormat.read(request, deployment === null ? body : { ...body, model: deployment }, mint),
    *frames(turn) {
      const prompt = [{ prompt_index: 0, content_filter_results: filterResults }]
      const first = { choices: [], created: 0, id: '', model: '', object: '', prompt_filter_results: prompt }
      yield { part: 'opening', name: null, data: JSON.stringify(first) }
      yield* openaiFormat.frames(turn)
    },
    failure(failure, mint) {
      if (failure.kind !== 'content_block') return openaiFormat.failure(failure, mint)
      const innererror = {
        code: 'ResponsibleAIPolicyViolation',
        content_filter_result: { ...filterResults, violence: { filtered: true, severity: 'high' } },
      }
      const message = "The response was filtered due to the prompt triggering Azure OpenAI's content management policy."
      const error = { message, type: null, param: 'prompt', code: 'content_filter', status: 400, innererror }
      return { kind: 'refusal', status: 400, headers: {}, body: { error } }
    },
  }
}

function vertexClaude(id: string, method: string): SimulatedFormat {
  const format = id === 'count-tokens' ? anthropicCount : anthropicFormat
  return {
    ...format,
    read(request, { anthropic_version, ...body }, mint) {
      const refuse = (message: string) => anthropicFormat.failure(mistake(message), mint)
      if (anthropic_version !== 'vertex-2023-10-16') return refuse('anthropic_version: Field required')
      if (id !== 'count-tokens' && 'model' in body) return refuse('model: Extra inputs are not permitted')
      if ((body.stream === true) !== (method === 'streamRawPredict')) return refuse('stream: does not match the method')
      const headers = { ...request.headers, 'x-api-key': 'token', 'anthropic-version': '2023-06-01' }
      return format.read({ ...request, headers }, id === 'count-tokens' ? body : { ...body, model: id }, mint)
    },
  }
}

function withHeaders(format: SimulatedFormat, headers: Readonly<Record<string, string>>): SimulatedFormat {
  return {
    ...format,
    read: (request, body, mint) => format.read({ ...request, headers: { ...request.headers, ...headers } }, body, mint),
  }
}

/** Refuses wrong credentials before the body is read, as the clouds' front ends do. */
function checked(cloud: Cloud, identity: CloudIdentity, format: SimulatedFormat): SimulatedFormat {
  return {
    ...format,
    read(request, body, mint) {
      const refusal = identity.refusal(cloud, request)
      if (refusal === null) return format.read(request, body, mint)
      const { status, code, message } = refusal
      if (cloud === 'aws') return awsFailure(status, code, message)
      const google = { code: status, message, status: 'UNAUTHENTICATED' }
      return { kind: 'refusal', status, headers: {}, body: { error: cloud === 'google' ? google : { code, message } } }
    },
  }
}
