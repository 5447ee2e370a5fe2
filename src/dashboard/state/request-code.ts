/** API forms in which the playground shows a request. */
export const codeDialects = ['chat_completions', 'responses', 'messages'] as const
export type CodeDialect = (typeof codeDialects)[number]

export const codeLanguages = ['curl', 'typescript', 'python'] as const
export type CodeLanguage = (typeof codeLanguages)[number]

/** A request as the playground would send it. */
export type CodeRequest = {
  /** Address of the gateway, without a path. */
  readonly origin: string
  readonly model: string
  /** Headers of the gateway (`X-Gateway-*`) that differ from the defaults. */
  readonly headers: Readonly<Record<string, string>>
  readonly messages: readonly { readonly role: 'system' | 'user' | 'assistant'; readonly content: string }[]
}

const paths: Readonly<Record<CodeDialect, string>> = {
  chat_completions: '/v1/chat/completions',
  responses: '/v1/responses',
  messages: '/v1/messages',
}

/** Output cap of Messages requests, which require one. */
const maxTokens = 1024

/** Returns the request as a program that works as it stands once `GATEWAY_KEY` is set. */
export function requestCode(request: CodeRequest, dialect: CodeDialect, language: CodeLanguage): string {
  switch (language) {
    case 'curl':
      return curlCode(request, dialect)
    case 'typescript':
      return dialect === 'messages' ? anthropicTypescript(request) : openaiTypescript(request, dialect)
    case 'python':
      return dialect === 'messages' ? anthropicPython(request) : openaiPython(request, dialect)
  }
}

/** The body in the API form of the dialect. */
function bodyOf({ model, messages }: CodeRequest, dialect: CodeDialect): Readonly<Record<string, unknown>> {
  const system = messages.find(({ role }) => role === 'system')?.content
  const turns = messages.filter(({ role }) => role !== 'system')
  switch (dialect) {
    case 'chat_completions':
      return { model, messages }
    case 'responses':
      return { model, ...(system === undefined ? {} : { instructions: system }), input: turns, store: false }
    case 'messages':
      return { model, max_tokens: maxTokens, ...(system === undefined ? {} : { system }), messages: turns }
  }
}

function curlCode(request: CodeRequest, dialect: CodeDialect): string {
  // Inside single quotes a shell reads everything but the quote itself.
  const body = JSON.stringify(bodyOf(request, dialect), null, 2).replaceAll("'", "'\\''")
  return [
    `curl ${request.origin}${paths[dialect]} \\`,
    `  -H "authorization: Bearer $GATEWAY_KEY" \\`,
    `  -H 'content-type: application/json' \\`,
    ...Object.entries(request.headers).map(([name, value]) => `  -H '${name}: ${value}' \\`),
    `  -d '${body}'`,
  ].join('\n')
}

function openaiTypescript(request: CodeRequest, dialect: 'chat_completions' | 'responses'): string {
  const [call, shown] =
    dialect === 'responses'
      ? ['client.responses.create', 'answer.output_text']
      : ['client.chat.completions.create', 'answer.choices[0]?.message.content']
  return [
    "import OpenAI from 'openai'",
    '',
    `const client = new OpenAI(${typescriptOptions(request, `${request.origin}/v1`)})`,
    `const answer = await ${call}(${JSON.stringify(bodyOf(request, dialect), null, 2)})`,
    `console.log(${shown})`,
  ].join('\n')
}

function anthropicTypescript(request: CodeRequest): string {
  return [
    "import Anthropic from '@anthropic-ai/sdk'",
    '',
    `const client = new Anthropic(${typescriptOptions(request, request.origin)})`,
    `const answer = await client.messages.create(${JSON.stringify(bodyOf(request, 'messages'), null, 2)})`,
    'console.log(answer.content)',
  ].join('\n')
}

function typescriptOptions({ headers }: CodeRequest, baseUrl: string): string {
  const extra = Object.keys(headers).length === 0 ? [] : [`  defaultHeaders: ${JSON.stringify(headers)},`]
  return ['{', `  baseURL: '${baseUrl}',`, '  apiKey: process.env.GATEWAY_KEY,', ...extra, '}'].join('\n')
}

function openaiPython(request: CodeRequest, dialect: 'chat_completions' | 'responses'): string {
  const [call, shown] =
    dialect === 'responses'
      ? ['client.responses.create', 'answer.output_text']
      : ['client.chat.completions.create', 'answer.choices[0].message.content']
  return pythonCode(request, {
    client: 'from openai import OpenAI',
    name: 'OpenAI',
    baseUrl: `${request.origin}/v1`,
    call,
    body: bodyOf(request, dialect),
    shown,
  })
}

function anthropicPython(request: CodeRequest): string {
  return pythonCode(request, {
    client: 'from anthropic import Anthropic',
    name: 'Anthropic',
    baseUrl: request.origin,
    call: 'client.messages.create',
    body: bodyOf(request, 'messages'),
    shown: 'answer.content',
  })
}

type PythonCode = {
  readonly client: string
  readonly name: string
  readonly baseUrl: string
  readonly call: string
  readonly body: Readonly<Record<string, unknown>>
  readonly shown: string
}

function pythonCode({ headers }: CodeRequest, { client, name, baseUrl, call, body, shown }: PythonCode): string {
  const extra = Object.keys(headers).length === 0 ? [] : [`    default_headers=${JSON.stringify(headers)},`]
  return [
    'import os',
    client,
    '',
    `client = ${name}(`,
    `    base_url="${baseUrl}",`,
    '    api_key=os.environ["GATEWAY_KEY"],',
    ...extra,
    ')',
    `answer = ${call}(`,
    ...Object.entries(body).map(([field, value]) => `    ${field}=${pythonValue(value)},`),
    ')',
    `print(${shown})`,
  ].join('\n')
}

/** JSON is Python but for its three names. Only `false` appears outside of strings here. */
function pythonValue(value: unknown): string {
  return value === false ? 'False' : JSON.stringify(value)
}
