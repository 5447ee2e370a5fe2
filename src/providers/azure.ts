/**
 * Azure OpenAI. The v1 API names the deployment in the body, as OpenAI does a model; older resources name it in the URL,
 * with an API version. `Access.authorizer` adds a token of Entra ID; otherwise the key has a header of its own.
 */
import type { Model } from '../core/models/models.ts'
import { openaiEmbeddings } from './openai/embeddings.ts'
import { openai } from './openai.ts'
import { needsResponses, openaiResponses } from './openai-responses.ts'
import type { Access, Provider, ProviderRequest } from './provider.ts'

type AzureOptions = {
  /** `api-version` of the deployments API; null = the v1 API. */
  readonly apiVersion: string | null
}

/** Without decisions, whose place there is not documented. */
const { decisions: _, ...compatible } = openai({ official: false })
const compatibleEmbeddings = openaiEmbeddings(false)

/** Creates the adapter. `Access.baseUrl` is the resource's, without `/openai`. */
export function azure({ apiVersion }: AzureOptions): Provider {
  const place = (request: ProviderRequest, access: Access, deployment: string) =>
    placed(request, access, { apiVersion, deployment })
  const chatCompletions: Provider = {
    ...compatible,
    toRequest: (question, access) => place(compatible.toRequest(question, inner(access)), access, question.model.id),
    listModels: ({ baseUrl, apiKey }) => ({
      url:
        apiVersion === null
          ? `${baseUrl}/openai/v1/models`
          : `${baseUrl}/openai/models?api-version=${encodeURIComponent(apiVersion)}`,
      headers: apiKey === null ? {} : { 'api-key': apiKey },
    }),
    embeddings: {
      ...compatibleEmbeddings,
      toRequest: (question, access) =>
        place(compatibleEmbeddings.toRequest(question, inner(access)), access, question.model.id),
    },
  }
  if (apiVersion !== null) return chatCompletions
  const responses: Provider = {
    ...openaiResponses,
    toRequest: (question, access) =>
      place(openaiResponses.toRequest(question, inner(access)), access, question.model.id),
  }
  // Azure also serves models of other companies, which do not speak the Responses form.
  const isOwn = ({ provider }: Pick<Model, 'provider'>) => provider === 'openai'
  return {
    ...chatCompletions,
    formFor: question => (isOwn(question.model) && needsResponses(question) ? responses : chatCompletions),
    takesSource: model => (isOwn(model) ? ['responses'] : []),
  }
}

function inner(access: Access): Access {
  return { ...access, baseUrl: `${access.baseUrl}/openai/v1`, apiKey: null }
}

/** Returns the request at the place of its deployment, with the key in Azure's header. */
function placed(
  request: ProviderRequest,
  { baseUrl, apiKey }: Access,
  { apiVersion, deployment }: AzureOptions & { readonly deployment: string },
): ProviderRequest {
  const v1 = `${baseUrl}/openai/v1`
  const named = `${baseUrl}/openai/deployments/${encodeURIComponent(deployment)}`
  return {
    ...request,
    url:
      apiVersion === null
        ? request.url
        : `${named}${request.url.slice(v1.length)}?api-version=${encodeURIComponent(apiVersion)}`,
    headers: apiKey === null ? request.headers : { ...request.headers, 'api-key': apiKey },
  }
}
