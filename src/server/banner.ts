import type { FirstAccount } from '../console/account/first-account.ts'
import { firstAccountLimits as limits, limitsText } from '../core/limits/plans.ts'
import { toUsd } from '../core/usage/money.ts'
import { shellCommand } from '../core/validation/errors.ts'

type BannerOptions = {
  readonly version: string
  readonly baseUrl: string
  readonly deps: {
    readonly config: { readonly web: { readonly search: readonly { readonly id: string }[] } }
    readonly isSimulated: () => boolean
    readonly firstAccount: FirstAccount | null
    /** By the name of the provider. */
    readonly endpoints: ReadonlyMap<string, unknown>
    /** Description of where data is stored. */
    readonly storage: string
    readonly isPostgresThere: boolean
  }
  /** Email address for commands that create keys; `undefined` = no account exists, null = only the operator knows it. */
  readonly keyOwner: string | null | undefined
}

/**
 * Builds the startup message: the address, the providers and stores, and at the first start all data for a first
 * request. Secrets are printed here once and never logged.
 */
export function banner(options: BannerOptions): string {
  const { baseUrl, deps } = options
  const { firstAccount } = deps
  const isSimulated = deps.isSimulated()
  const providers = [...deps.endpoints.keys()].join(', ')
  const search = deps.config.web.search.map(({ id }) => id).join(', ')
  return [
    '',
    `  gateway-ai ${options.version}`,
    '',
    `  listening   ${baseUrl}`,
    `  dashboard   ${baseUrl}/`,
    `  providers   ${providers}${isSimulated ? ` (simulated: set ${realKeys}, or add a key in the dashboard, for real models)` : ''}`,
    `  web search  ${search || (isSimulated ? 'simulated' : `none (set ${searchKeys})`)}`,
    `  storage     ${deps.storage}${deps.isPostgresThere ? '' : ' (unreachable: the gateway waits for it)'}`,
    '',
    ...(firstAccount === null
      ? nextCommand(options)
      : [...firstAccountLines(firstAccount), '', '  Try it:', '', ...curl(baseUrl, firstAccount.key)]),
    '',
  ].join('\n')
}

function nextCommand({ keyOwner, deps }: Pick<BannerOptions, 'keyOwner' | 'deps'>): string[] {
  if (!deps.isPostgresThere) return ['  Requests that need the database get 503 until Postgres answers.']
  if (keyOwner === undefined) return [`  First account:  ${firstAccountCommand()}`]
  return [`  Another key:  ${shellCommand(`keys create ${keyOwner ?? '<email>'}`)}`]
}

/** Creates the first account of an external database. */
export const firstAccountCommand = () => shellCommand('accounts create <email> --plan usage')

const searchKeys = 'SEARXNG_URL, BRAVE_API_KEY or TAVILY_API_KEY'
const realKeys = 'OPENAI_API_KEY, ANTHROPIC_API_KEY or GEMINI_API_KEY'

/** Credentials of the first account, which are never shown again, and its limits with the command that changes them. */
function firstAccountLines(account: FirstAccount): string[] {
  const options = `--rpm ${limits.requestsPerMinute} --concurrent ${limits.concurrentRequests} --daily-tokens ${limits.dailyTokens} --daily-cost-usd ${toUsd(limits.dailyCostMicrocents)}`
  return [
    '  Created a local account for the dashboard and the API. Its credentials are shown only once:',
    '',
    `  email       ${account.email}`,
    `  password    ${account.password}`,
    `  API key     ${account.key}`,
    '',
    `  Limits:     ${limitsText(limits)}`,
    `  Change:     page Settings of the dashboard, or ${shellCommand(`accounts limits ${account.email} ${options}`)}`,
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
