/** Requests to token endpoints: bounded in time and size, and with errors that contain no secret. */
import { type Clock, type Network, readBodyText } from '../core/ports.ts'
import type { ProviderFailure } from '../providers/provider.ts'

export type CredentialDeps = {
  readonly clock: Pick<Clock, 'now' | 'monotonic' | 'after'>
  readonly network: Pick<Network, 'fetch'>
}

/** Bound for a whole token request. */
export const tokenTimeoutMs = 10_000
const maximumCharacters = 65_536

/**
 * Posts a form and returns the body of a response with status 200. Every other result is a failure: a refusal is the
 * gateway's own (`credential_refused`), an outage of the endpoint the upstream's.
 */
export async function postForm(
  { clock, network }: CredentialDeps,
  what: string,
  url: string,
  form: Readonly<Record<string, string>>,
): Promise<{ readonly text: string } | { readonly failure: ProviderFailure }> {
  const abort = new AbortController()
  const cancel = clock.after(tokenTimeoutMs, () => abort.abort())
  try {
    const response = await network.fetch(url, {
      method: 'POST',
      headers: { 'content-type': 'application/x-www-form-urlencoded', accept: 'application/json' },
      body: new URLSearchParams(form).toString(),
      signal: abort.signal,
      // A redirect would send the secret to its target.
      redirect: 'error',
    })
    const text = await readBodyText(response, maximumCharacters)
    if (response.ok) return { text }
    const detail = `${what}: ${[response.status, ...errorCodes(text)].join(' ')}`
    const isRefusal = [400, 401, 403].includes(response.status)
    return { failure: isRefusal ? refused(detail) : unavailable(detail) }
  } catch {
    return { failure: unavailable(`${what}: ${abort.signal.aborted ? 'no response in time' : 'no connection'}`) }
  } finally {
    cancel()
    abort.abort()
  }
}

/** Returns the failure of a credential that the gateway lacks or that was refused. `detail` is for the operator. */
export function refused(detail: string): ProviderFailure {
  return { kind: 'credential_refused', blame: 'us', retryable: true, retryAfterMs: null, detail }
}

function unavailable(detail: string): ProviderFailure {
  return { kind: 'unavailable', blame: 'upstream', retryable: true, retryAfterMs: null, detail }
}

/** OAuth's `error` and AWS's `Code` are identifiers; descriptions next to them may repeat what was sent. */
function errorCodes(text: string): readonly string[] {
  const [, code] = /"error"\s*:\s*"([A-Za-z_]{1,64})"|<Code>([A-Za-z]{1,64})<\/Code>/.exec(text)?.filter(Boolean) ?? []
  return code === undefined ? [] : [code]
}
