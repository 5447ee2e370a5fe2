import type { Deps } from './deps.ts'

/**
 * What a person sees at the start: where the gateway is, what it is running on, and, the first time, everything needed
 * for a first answer. Secrets are printed here once and logged nowhere.
 */
export function banner(options: {
  readonly version: string
  readonly baseUrl: string
  readonly deps: Pick<Deps, 'simulator' | 'firstAccount' | 'endpoints' | 'storage'>
}): string {
  const { baseUrl, deps } = options
  const providers = [...deps.endpoints.keys()].join(', ')
  const lines = [
    '',
    `  gateway-ai ${options.version}`,
    '',
    `  listening   ${baseUrl}`,
    `  providers   ${providers}${deps.simulator === null ? '' : ' (simulated: set OPENAI_API_KEY, ANTHROPIC_API_KEY or GEMINI_API_KEY for real answers)'}`,
    `  storage     ${deps.storage}`,
  ]
  const account = deps.firstAccount
  if (account === null)
    lines.push('', '  Another key:  bun run gateway keys create <email>', '')
  else
    lines.push(
      '',
      '  A local account was made. This is shown once:',
      '',
      `  e-mail      ${account.email}`,
      `  password    ${account.password}`,
      `  API key     ${account.key}`,
      '',
      '  Try it:',
      '',
      curl(baseUrl, account.key),
      '',
    )
  return lines.join('\n')
}

function curl(baseUrl: string, key: string): string {
  const body = JSON.stringify({ model: 'gateway-ai', messages: [{ role: 'user', content: 'Say hello in one sentence.' }] })
  return [
    `  curl ${baseUrl}/v1/chat/completions \\`,
    `    -H 'authorization: Bearer ${key}' \\`,
    `    -H 'content-type: application/json' \\`,
    `    -d '${body}'`,
  ].join('\n')
}
