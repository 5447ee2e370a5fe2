import type { FirstAccount } from '../composition/first-account.ts'
import { shellCommand } from './shell-command.ts'

/**
 * What a person sees at the start: where the gateway is, what it is running on, and, the first time, everything needed
 * for a first answer. Secrets are printed here once and logged nowhere. `keyOwner` is whose further keys to speak of.
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
    /** Where data is stored, in words. */
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
    `  providers   ${providers}${simulator === null ? '' : ` (simulated: set ${realKeys} for real answers)`}`,
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

/** The first account's credentials, which nobody can show again. */
export function firstAccountLines(account: FirstAccount): string[] {
  return [
    '  A local account was made, for the dashboard and the API. This is shown once:',
    '',
    `  e-mail      ${account.email}`,
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
