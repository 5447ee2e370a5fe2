/** Signs requests to AWS with Signature Version 4, by access keys or by the temporary keys of a role. */
import { readFile } from 'node:fs/promises'
import { AwsV4Signer } from 'aws4fetch'
import type { Authorization, Authorizer, ProviderFailure, SignableRequest } from '../providers/provider.ts'
import { type CredentialDeps, credentialCache, type Fetched, postForm, refused } from './credential-cache.ts'

/** A key pair; the session token belongs to temporary ones. */
type AwsKeys = {
  readonly accessKeyId: string
  readonly secretAccessKey: string
  readonly sessionToken: string | null
}

/** A role that a token of the platform (Kubernetes, CI) may assume. */
type WebIdentity = {
  readonly stsUrl: string
  readonly roleArn: string
  readonly sessionName: string
  /** The platform replaces the file's token before it expires. */
  readonly tokenFile: string
}

export type AwsCredentials =
  | { readonly kind: 'keys'; readonly keys: AwsKeys }
  | { readonly kind: 'web_identity'; readonly identity: WebIdentity }

type AwsScope = { readonly region: string; readonly service: string }

/** AWS accepts signatures up to 5 minutes off. A smaller difference is not the cause of a refusal. */
const harmlessSkewMs = 240_000

/** Creates an authorizer. The clock of AWS applies if this machine's clock differs from it by minutes. */
export function awsAuthorizer(deps: CredentialDeps, credentials: AwsCredentials, scope: AwsScope): Authorizer {
  const { clock } = deps
  let skewMs = 0
  // Derived keys of the day; aws4fetch adds one entry per day and secret.
  let derived = new Map<string, ArrayBuffer>()
  const cache = credentialCache<AwsKeys>(clock, async () => {
    derived = new Map()
    return credentials.kind === 'keys'
      ? { value: credentials.keys, lifetimeMs: Number.MAX_SAFE_INTEGER }
      : await assumedRole(deps, credentials.identity)
  })

  const signed = async ({ url, headers, body }: SignableRequest, keys: AwsKeys): Promise<Authorization> => {
    const signer = new AwsV4Signer({
      method: 'POST',
      url,
      headers: { ...headers },
      body,
      accessKeyId: keys.accessKeyId,
      secretAccessKey: keys.secretAccessKey,
      ...(keys.sessionToken !== null && { sessionToken: keys.sessionToken }),
      ...scope,
      cache: derived,
      datetime: new Date(clock.now() + skewMs).toISOString().replace(/[:-]|\.\d{3}/g, ''),
    })
    const { headers: withSignature } = await signer.sign()
    return { headers: Object.fromEntries(withSignature) }
  }

  return {
    async authorize(request) {
      const result = await cache.get()
      if ('failure' in result) return result
      return await signed(request, result.value).catch(() => ({ failure: refused('AWS signature: invalid keys') }))
    },
    isRenewable({ headers }, sent) {
      const code = (headers.get('x-amzn-errortype') ?? '').split(':')[0] ?? ''
      if (code === 'ExpiredTokenException') {
        const used = sent['x-amz-security-token'] ?? ''
        const keys = cache.get()
        if (credentials.kind === 'keys' || keys instanceof Promise || 'failure' in keys) return false
        return keys.value.sessionToken !== used || cache.isReplaceable(keys.value)
      }
      // AWS reports a wrong clock as a signature that has expired or is not yet current.
      const date = Date.parse(headers.get('date') ?? '')
      // Compared with the signature's own time: another request may have corrected the clock meanwhile.
      if (!(Math.abs(date - signedAt(sent['x-amz-date'])) > harmlessSkewMs)) return false
      skewMs = date - clock.now()
      return true
    },
  }
}

/** Returns the time of a signature (`20261123T120000Z`) in epoch milliseconds. */
function signedAt(stamp = ''): number {
  return Date.parse(stamp.replace(/^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z$/, '$1-$2-$3T$4:$5:$6Z'))
}

/** Calls AssumeRoleWithWebIdentity, which needs no signature. */
async function assumedRole(
  deps: CredentialDeps,
  { stsUrl, roleArn, sessionName, tokenFile }: WebIdentity,
): Promise<Fetched<AwsKeys> | { readonly failure: ProviderFailure }> {
  const token = await readFile(tokenFile, 'utf8').catch(() => null)
  if (token === null) return { failure: refused('AWS role: the web identity token file cannot be read') }
  const response = await postForm(deps, 'AWS role', `${stsUrl}/`, {
    Action: 'AssumeRoleWithWebIdentity',
    Version: '2011-06-15',
    RoleArn: roleArn,
    RoleSessionName: sessionName,
    WebIdentityToken: token.trim(),
  })
  if ('failure' in response) return response
  return keysIn(response.text, deps.clock.now()) ?? { failure: refused('AWS role: not credentials') }
}

/** STS answers in XML, in JSON to clients that accept it. */
function keysIn(text: string, now: number): Fetched<AwsKeys> | null {
  const field = (name: string) =>
    new RegExp(`<${name}>([^<]+)</${name}>|"${name}"\\s*:\\s*"?([^",}]+)`).exec(text)?.slice(1).find(Boolean)?.trim() ??
    ''
  const [accessKeyId, secretAccessKey, sessionToken] = ['AccessKeyId', 'SecretAccessKey', 'SessionToken'].map(field)
  const expiration = field('Expiration')
  const endsAt = /^\d+(\.\d+)?(E\d+)?$/.test(expiration) ? Number(expiration) * 1_000 : Date.parse(expiration)
  if (!accessKeyId || !secretAccessKey || !sessionToken || !(endsAt > now)) return null
  return { value: { accessKeyId, secretAccessKey, sessionToken }, lifetimeMs: Math.min(endsAt - now, 86_400_000) }
}
