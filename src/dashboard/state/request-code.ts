import { type CodeDialect, type CodeRequest, codeBody } from './code-body.ts'

export const codeLanguages = ['curl', 'typescript', 'python'] as const
export type CodeLanguage = (typeof codeLanguages)[number]

/** How the client of each API form is imported and called. Calls of `answer` differ by the language's access to a list. */
const clients = {
  chat_completions: {
    path: '/v1/chat/completions',
    name: 'OpenAI',
    from: 'openai',
    base: '/v1',
    call: 'client.chat.completions.create',
  },
  responses: { path: '/v1/responses', name: 'OpenAI', from: 'openai', base: '/v1', call: 'client.responses.create' },
  messages: {
    path: '/v1/messages',
    name: 'Anthropic',
    from: 'anthropic',
    base: '',
    call: 'client.messages.create',
  },
} as const satisfies Record<CodeDialect, unknown>

/** Returns the request as a program that works as it stands once `GATEWAY_KEY` is set. */
export function requestCode(request: CodeRequest, dialect: CodeDialect, language: CodeLanguage): string {
  if (language === 'curl') return curlCode(request, dialect)
  return language === 'typescript' ? typescriptCode(request, dialect) : pythonCode(request, dialect)
}

function curlCode(request: CodeRequest, dialect: CodeDialect): string {
  // Inside single quotes a shell reads everything but the quote itself.
  const body = JSON.stringify(codeBody(request, dialect), null, 2).replaceAll("'", "'\\''")
  return [
    `curl ${request.origin}${clients[dialect].path} \\`,
    `  -H "authorization: Bearer $GATEWAY_KEY" \\`,
    `  -H 'content-type: application/json' \\`,
    ...Object.entries(request.headers).map(([name, value]) => `  -H '${name}: ${value}' \\`),
    `  -d '${body}'`,
  ].join('\n')
}

/** Returns the text of the output, or with tools the whole output. `first` takes the first choice. */
function shownOutput({ parameters }: CodeRequest, dialect: CodeDialect, first: string): string {
  const hasTools = parameters.tools !== undefined
  if (dialect === 'messages') return 'answer.content'
  if (dialect === 'responses') return hasTools ? 'answer.output' : 'answer.output_text'
  return `answer.choices${first}.message${hasTools ? '' : '.content'}`
}

/** Returns the body, and those of its fields that Anthropic's clients no longer have as parameters. */
function splitBody(request: CodeRequest, dialect: CodeDialect) {
  const body = codeBody(request, dialect)
  if (dialect !== 'messages') return { body, extra: {} }
  const { temperature, top_p, ...others } = body
  const extra = { ...(temperature === undefined ? {} : { temperature }), ...(top_p === undefined ? {} : { top_p }) }
  return { body: others, extra }
}

const isEmpty = (fields: object) => Object.keys(fields).length === 0

function typescriptCode(request: CodeRequest, dialect: CodeDialect): string {
  const { name, from, base, call } = clients[dialect]
  const { body, extra } = splitBody(request, dialect)
  const text = JSON.stringify(body, null, 2)
  // A spread: the types of the client do not have these fields.
  const given = isEmpty(extra) ? text : text.replace(/\n}$/, `,\n  ...${JSON.stringify(extra)}\n}`)
  return [
    `import ${name} from '${from === 'anthropic' ? '@anthropic-ai/sdk' : from}'`,
    '',
    `const client = new ${name}({`,
    `  baseURL: '${request.origin}${base}',`,
    '  apiKey: process.env.GATEWAY_KEY,',
    ...(isEmpty(request.headers) ? [] : [`  defaultHeaders: ${JSON.stringify(request.headers)},`]),
    '})',
    `const answer = await ${call}(${given})`,
    `console.log(${shownOutput(request, dialect, '[0]?')})`,
  ].join('\n')
}

function pythonCode(request: CodeRequest, dialect: CodeDialect): string {
  const { name, from, base, call } = clients[dialect]
  const { body, extra } = splitBody(request, dialect)
  const fields = isEmpty(extra) ? body : { ...body, extra_body: extra }
  return [
    'import os',
    `from ${from} import ${name}`,
    '',
    `client = ${name}(`,
    `    base_url="${request.origin}${base}",`,
    '    api_key=os.environ["GATEWAY_KEY"],',
    ...(isEmpty(request.headers) ? [] : [`    default_headers=${JSON.stringify(request.headers)},`]),
    ')',
    `answer = ${call}(`,
    ...Object.entries(fields).map(([field, value]) => `    ${field}=${pythonValue(value)},`),
    ')',
    `print(${shownOutput(request, dialect, '[0]')})`,
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
