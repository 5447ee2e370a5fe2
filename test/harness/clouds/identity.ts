/**
 * Simulated identity services of the clouds: token endpoints of Microsoft Entra ID, Google and AWS STS, and the checks
 * that a cloud makes of a request's key, token or signature.
 */
import { createHash, createHmac, createVerify, type KeyObject, randomBytes, timingSafeEqual } from 'node:crypto'
import { jsonReply, piece, type Reply } from '../../../src/simulator/reply.ts'
import type { RawRequest } from '../../../src/simulator/server.ts'

/** Accounts of the simulated clouds, which refuse all others. */
export type CloudAccounts = {
  readonly aws: {
    readonly region: string
    readonly accessKeyId: string
    readonly secretAccessKey: string
    readonly roleArn: string
    readonly webIdentityToken: string
  }
  readonly azure: {
    readonly apiKey: string
    readonly tenantId: string
    readonly clientId: string
    readonly clientSecret: string
  }
  readonly google: { readonly clientEmail: string; readonly publicKey: KeyObject; readonly project: string }
  /** Life of issued tokens and temporary keys. */
  readonly tokenLifetimeMs: number
}

/** Why a request is refused: an AWS exception, or the status of the other clouds. */
export type CloudRefusal = { readonly status: number; readonly code: string; readonly message: string }

export type CloudIdentity = {
  /** Answers a token request; null = the path is no token endpoint. */
  tokenReply(request: RawRequest): Reply | null
  /** Returns why the request's signature, key or token is wrong; null = it is right. */
  refusal(cloud: 'aws' | 'azure' | 'google', request: RawRequest): CloudRefusal | null
  /** Ends the life of everything that was issued. */
  revokeTokens(): void
  /** Number of tokens and temporary keys issued so far. */
  issued(): number
}

type Issued = { readonly endsAt: number; readonly secret: string; readonly sessionToken: string }

/** AWS accepts signatures made up to 5 minutes ago or ahead. */
const maximumSkewMs = 300_000

/** Creates the services. `clock` is the clouds' own. */
export function createCloudIdentity(accounts: CloudAccounts, clock: { now(): number }): CloudIdentity {
  const bearers = new Map<string, { readonly cloud: 'azure' | 'google'; readonly endsAt: number }>()
  const keys = new Map<string, Issued>()
  let issued = 0

  const issueToken = (cloud: 'azure' | 'google'): Reply => {
    const token = (cloud === 'azure' ? 'eyJ0eXAi.' : 'ya29.') + randomBytes(48).toString('base64url')
    bearers.set(token, { cloud, endsAt: clock.now() + accounts.tokenLifetimeMs })
    issued++
    const expires_in = Math.round(accounts.tokenLifetimeMs / 1_000)
    return jsonReply(200, { token_type: 'Bearer', expires_in, access_token: token })
  }

  const issueKeys = (): Reply => {
    const accessKeyId = `ASIA${randomBytes(8).toString('hex').toUpperCase()}`
    const key = {
      endsAt: clock.now() + accounts.tokenLifetimeMs,
      secret: randomBytes(20).toString('hex'),
      sessionToken: randomBytes(100).toString('hex'),
    }
    keys.set(accessKeyId, key)
    issued++
    return xmlReply(
      200,
      `<AssumeRoleWithWebIdentityResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><AssumeRoleWithWebIdentityResult>` +
        `<Credentials><AccessKeyId>${accessKeyId}</AccessKeyId><SecretAccessKey>${key.secret}</SecretAccessKey>` +
        `<SessionToken>${key.sessionToken}</SessionToken><Expiration>${new Date(key.endsAt).toISOString()}</Expiration>` +
        `</Credentials></AssumeRoleWithWebIdentityResult></AssumeRoleWithWebIdentityResponse>`,
    )
  }

  const bearerRefusal = (cloud: 'azure' | 'google', authorization: string): CloudRefusal | null => {
    const known = bearers.get(authorization.replace(/^Bearer /, ''))
    if (known?.cloud === cloud && clock.now() < known.endsAt) return null
    return { status: 401, code: '401', message: 'The access token is missing, invalid or has expired.' }
  }

  const awsRefusal = (request: RawRequest): CloudRefusal | null => {
    const signature = findSignature(request.headers.authorization ?? '')
    if (signature === null) return forbidden('MissingAuthenticationTokenException', 'Missing Authentication Token')
    const { accessKeyId, secretAccessKey, region } = accounts.aws
    const temporary = keys.get(signature.accessKeyId)
    if (temporary === undefined && signature.accessKeyId !== accessKeyId)
      return forbidden('UnrecognizedClientException', 'The security token included in the request is invalid.')
    if (temporary !== undefined && temporary.sessionToken !== request.headers['x-amz-security-token'])
      return forbidden('UnrecognizedClientException', 'The security token included in the request is invalid.')
    if (temporary !== undefined && clock.now() >= temporary.endsAt)
      return forbidden('ExpiredTokenException', 'The security token included in the request is expired')
    if (signature.region !== region || signature.service !== 'bedrock')
      return forbidden('InvalidSignatureException', `Credential should be scoped to a valid region: '${region}'.`)
    const date = request.headers['x-amz-date'] ?? ''
    const signedAt = Date.parse(date.replace(/^(.{4})(..)(..T..)(..)(..Z)$/, '$1-$2-$3:$4:$5'))
    if (!(Math.abs(signedAt - clock.now()) <= maximumSkewMs))
      return forbidden('InvalidSignatureException', `Signature expired: ${date} is too far from the server's time.`)
    return isSigned(request, signature, temporary?.secret ?? secretAccessKey)
      ? null
      : forbidden(
          'InvalidSignatureException',
          'The request signature we calculated does not match the one you provided.',
        )
  }

  return {
    tokenReply(request) {
      const [route = ''] = request.path.split('?')
      const form = new URLSearchParams(new TextDecoder().decode(request.body))
      const { azure, google, aws } = accounts
      if (route === `/${azure.tenantId}/oauth2/v2.0/token`) {
        const isRight =
          form.get('grant_type') === 'client_credentials' &&
          form.get('client_id') === azure.clientId &&
          form.get('client_secret') === azure.clientSecret &&
          form.get('scope') === 'https://cognitiveservices.azure.com/.default'
        return isRight ? issueToken('azure') : jsonReply(401, oauthError('invalid_client'))
      }
      if (route === '/google/token') {
        const isRight = isAssertion(form.get('assertion') ?? '', google, request.headers.host ?? '', clock.now())
        return isRight ? issueToken('google') : jsonReply(400, oauthError('invalid_grant'))
      }
      if (route !== '/sts/') return null
      const isRight =
        form.get('Action') === 'AssumeRoleWithWebIdentity' &&
        form.get('Version') === '2011-06-15' &&
        form.get('RoleArn') === aws.roleArn &&
        form.get('WebIdentityToken') === aws.webIdentityToken
      if (isRight) return issueKeys()
      const error = `<Error><Type>Sender</Type><Code>InvalidIdentityToken</Code><Message>simulated</Message></Error>`
      return xmlReply(400, `<ErrorResponse>${error}</ErrorResponse>`)
    },
    refusal(cloud, request) {
      if (cloud === 'aws') return awsRefusal(request)
      const { authorization = '' } = request.headers
      const key = request.headers['api-key']
      if (cloud === 'google' || key === undefined) return bearerRefusal(cloud, authorization)
      if (key === accounts.azure.apiKey) return null
      return {
        status: 401,
        code: '401',
        message: 'Access denied due to invalid subscription key or wrong API endpoint.',
      }
    },
    revokeTokens() {
      bearers.clear()
      for (const [id, key] of keys) keys.set(id, { ...key, endsAt: 0 })
    },
    issued: () => issued,
  }
}

function forbidden(code: string, message: string): CloudRefusal {
  return { status: 403, code, message }
}

function oauthError(error: string) {
  return { error, error_description: 'Simulated: the credentials are not those of the simulated account.' }
}

function xmlReply(status: number, body: string): Reply {
  return {
    kind: 'http',
    status,
    headers: { 'content-type': 'text/xml' },
    framing: 'length',
    headDelayMs: 0,
    pieces: [piece(body)],
  }
}

/** Checks an assertion of RFC 7523 as Google does: RS256, the account, this endpoint, at most an hour of life. */
function isAssertion(jwt: string, google: CloudAccounts['google'], host: string, now: number): boolean {
  const [header = '', claims = '', signature = ''] = jwt.split('.')
  const verify = createVerify('RSA-SHA256').update(`${header}.${claims}`)
  if (!verify.verify(google.publicKey, signature, 'base64url')) return false
  const { alg } = decoded(header)
  const { iss, aud, scope, iat, exp } = decoded(claims)
  const at = now / 1_000
  return (
    alg === 'RS256' &&
    iss === google.clientEmail &&
    aud === `http://${host}/google/token` &&
    scope === 'https://www.googleapis.com/auth/cloud-platform' &&
    Number(iat) <= at + 300 &&
    Number(exp) > at &&
    Number(exp) - Number(iat) <= 3_600
  )
}

function decoded(part: string): Readonly<Record<string, unknown>> {
  return JSON.parse(Buffer.from(part, 'base64url').toString('utf8'))
}

type Signature = {
  readonly accessKeyId: string
  readonly day: string
  readonly region: string
  readonly service: string
  readonly signedHeaders: readonly string[]
  readonly signature: string
}

const authorizationForm =
  /^AWS4-HMAC-SHA256 Credential=([^/]+)\/(\d{8})\/([^/]+)\/([^/]+)\/aws4_request, ?SignedHeaders=([^,]+), ?Signature=([0-9a-f]{64})$/

function findSignature(authorization: string): Signature | null {
  const [, accessKeyId, day, region, service, names, signature] = authorizationForm.exec(authorization) ?? []
  if (!accessKeyId || !day || !region || !service || !names || !signature) return null
  return { accessKeyId, day, region, service, signedHeaders: names.split(';'), signature }
}

/** Computes Signature Version 4 from AWS's description of it, independently of the library that signs. */
function isSigned(request: RawRequest, signed: Signature, secret: string): boolean {
  const { headers, method, path, body } = request
  const { day, region, service, signedHeaders, signature } = signed
  const date = headers['x-amz-date'] ?? ''
  if (!date.startsWith(day) || !signedHeaders.includes('host') || !signedHeaders.includes('x-amz-date')) return false
  if (headers['x-amz-security-token'] !== undefined && !signedHeaders.includes('x-amz-security-token')) return false
  const [route = '', query = ''] = path.split('?')
  // The path as sent is encoded once; the signature covers it encoded once more.
  const canonicalPath = route.split('/').map(strictlyEncoded).join('/')
  const canonicalHeaders = signedHeaders.map(name => `${name}:${(headers[name] ?? '').trim().replace(/ +/g, ' ')}\n`)
  const canonicalRequest = [
    method,
    canonicalPath,
    query.split('&').sort().join('&'),
    canonicalHeaders.join(''),
    signedHeaders.join(';'),
    createHash('sha256').update(body).digest('hex'),
  ].join('\n')
  const scope = `${day}/${region}/${service}/aws4_request`
  const text = ['AWS4-HMAC-SHA256', date, scope, createHash('sha256').update(canonicalRequest).digest('hex')].join('\n')
  const mac = (key: string | Buffer, data: string) => createHmac('sha256', key).update(data).digest()
  const key = mac(mac(mac(mac(`AWS4${secret}`, day), region), service), 'aws4_request')
  return timingSafeEqual(mac(key, text), Buffer.from(signature, 'hex'))
}

function strictlyEncoded(segment: string): string {
  return encodeURIComponent(segment).replace(/[!'()*]/g, at => `%${at.charCodeAt(0).toString(16).toUpperCase()}`)
}
