import { type CodeDialect, type CodeRequest, codeBody } from './code-body.ts'

export const codeLanguages = ['curl', 'typescript', 'python'] as const
export type CodeLanguage = (typeof codeLanguages)[number]

const paths: Readonly<Record<CodeDialect, string>> = {
  chat_completions: '/v1/chat/completions',
  responses: '/v1/responses',
  messages: '/v1/messages',
}

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

function curlCode(request: CodeRequest, dialect: CodeDialect): string {
  // Inside single quotes a shell reads everything but the quote itself.
  const body = JSON.stringify(codeBody(request, dialect), null, 2).replaceAll("'", "'\\''")
  return [
    `curl ${request.origin}${paths[dialect]} \\`,
    `  -H "authorization: Bearer $GATEWAY_KEY" \\`,
    `  -H 'content-type: application/json' \\`,
    ...Object.entries(request.headers).map(([name, value]) => `  -H '${name}: ${value}' \\`),
    `  -d '${body}'`,
  ].join('\n')
}

function openaiTypescript(request: CodeRequest, dialect: 'chat_completions' | 'responses'): string {
  const hasTools = request.parameters.tools !== undefined
  const [call, shown] =
    dialect === 'responses'
      ? ['client.responses.create', hasTools ? 'answer.output' : 'answer.output_text']
      : ['client.chat.completions.create', `answer.choices[0]?.message${hasTools ? '' : '.content'}`]
  return [
    "import OpenAI from 'openai'",
    '',
    `const client = new OpenAI(${typescriptOptions(request, `${request.origin}/v1`)})`,
    `const answer = await ${call}(${JSON.stringify(codeBody(request, dialect), null, 2)})`,
    `console.log(${shown})`,
  ].join('\n')
}

function anthropicTypescript(request: CodeRequest): string {
  return [
    "import Anthropic from '@anthropic-ai/sdk'",
    '',
    `const client = new Anthropic(${typescriptOptions(request, request.origin)})`,
    `const answer = await client.messages.create(${messagesTypescript(request)})`,
    'console.log(answer.content)',
  ].join('\n')
}

/** A spread: the types of the client do not have these fields. */
function messagesTypescript(request: CodeRequest): string {
  const [body, extra] = messagesFields(request)
  const text = JSON.stringify(body, null, 2)
  return Object.keys(extra).length === 0 ? text : text.replace(/\n}$/, `,\n  ...${JSON.stringify(extra)}\n}`)
}

/** The body of a Messages request, and those of its fields that Anthropic's clients no longer have as parameters. */
function messagesFields(request: CodeRequest) {
  const { temperature, top_p, ...body } = codeBody(request, 'messages')
  const extra = { ...(temperature === undefined ? {} : { temperature }), ...(top_p === undefined ? {} : { top_p }) }
  return [body, extra] as const
}

function typescriptOptions({ headers }: CodeRequest, baseUrl: string): string {
  const extra = Object.keys(headers).length === 0 ? [] : [`  defaultHeaders: ${JSON.stringify(headers)},`]
  return ['{', `  baseURL: '${baseUrl}',`, '  apiKey: process.env.GATEWAY_KEY,', ...extra, '}'].join('\n')
}

function openaiPython(request: CodeRequest, dialect: 'chat_completions' | 'responses'): string {
  const hasTools = request.parameters.tools !== undefined
  const [call, shown] =
    dialect === 'responses'
      ? ['client.responses.create', hasTools ? 'answer.output' : 'answer.output_text']
      : ['client.chat.completions.create', `answer.choices[0].message${hasTools ? '' : '.content'}`]
  return pythonCode(request, {
    client: 'from openai import OpenAI',
    name: 'OpenAI',
    baseUrl: `${request.origin}/v1`,
    call,
    body: codeBody(request, dialect),
    shown,
  })
}

function anthropicPython(request: CodeRequest): string {
  const [body, extra] = messagesFields(request)
  return pythonCode(request, {
    client: 'from anthropic import Anthropic',
    name: 'Anthropic',
    baseUrl: request.origin,
    call: 'client.messages.create',
    body: Object.keys(extra).length === 0 ? body : { ...body, extra_body: extra },
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

/** Python's literal: JSON but for the names of three values. */
function pythonValue(value: unknown): string {
  if (value === true) return 'True'
  if (value === false) return 'False'
  if (value === null) return 'None'
  if (Array.isArray(value)) return `[${value.map(pythonValue).join(',')}]`
  if (typeof value !== 'object') return JSON.stringify(value)
  const fields = Object.entries(value).map(([name, field]) => `${JSON.stringify(name)}:${pythonValue(field)}`)
  return `{${fields.join(',')}}`
}
