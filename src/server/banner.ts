import type { FirstAccount } from '../composition/first-account.ts'
import { shellCommand } from './shell-command.ts'

/**
 * Builds the startup message: the address, the providers and stores, and at the first start all data for a first
 * request. Secrets are printed here once and never logged. `keyOwner` is the email address for commands that create
 * further keys.
 */
export function banner(options: {
  readonly version: string
  readonly baseUrl: string
  readonly deps: {
    readonly config: { readonly web: { readonly search: readonly { readonly id: string }[] } }
    /** Null = the providers are real. */
    readonly simulator: object | null
    readonly firstAccount: FirstAccount | null
    /** By the name of the provider. */
    readonly endpoints: ReadonlyMap<string, unknown>
    /** Description of where data is stored. */
    readonly storage: string
  }
  readonly keyOwner: string | null
}): string {
  const { baseUrl, deps } = options
  const { firstAccount, simulator } = deps
  const providers = [...deps.endpoints.keys()].join(', ')
  const search = deps.config.web.search.map(({ id }) => id).join(', ')
  return [
    '',
    `  gateway-ai ${options.version}`,
    '',
    `  listening   ${baseUrl}`,
    `  dashboard   ${baseUrl}/`,
    `  providers   ${providers}${simulator === null ? '' : ` (simulated: set ${realKeys} for real models)`}`,
    `  web search  ${search || (simulator === null ? `none (set ${searchKeys})` : 'simulated')}`,
    `  storage     ${deps.storage}`,
    '',
    ...(firstAccount === null
      ? [`  Another key:  ${shellCommand(`keys create ${options.keyOwner ?? '<email>'}`)}`]
      : [...firstAccountLines(firstAccount), '', '  Try it:', '', ...curl(baseUrl, firstAccount.key)]),
    '',
  ].join('\n')
}

const searchKeys = 'SEARXNG_URL, BRAVE_API_KEY or TAVILY_API_KEY'
const realKeys = 'OPENAI_API_KEY, ANTHROPIC_API_KEY or GEMINI_API_KEY'

/** Credentials of the first account, which are never shown again. */
export function firstAccountLines(account: FirstAccount): string[] {
  return [
    '  Created a local account for the dashboard and the API. Its credentials are shown only once:',
    '',
    `  email       ${account.email}`,
    `  password    ${account.password}`,
    `  API key     ${account.key}`,
  ]
}

function curl(baseUrl: string, key: string): string[] {
  const body = JSON.stringify({
    model: 'gateway-ai',
    messages: [{ role: 'user', content: 'Say hello in one sentence.' }],
  })
  return [
    `  curl ${baseUrl}/v1/chat/completions \\`,
    `    -H 'authorization: Bearer ${key}' \\`,
    `    -H 'content-type: application/json' \\`,
    `    -d '${body}'`,
  ]
}
