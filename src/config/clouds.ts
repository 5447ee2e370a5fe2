/** Providers on a cloud in the configuration file (`type`): their base URLs and their credentials. */
import { readFileSync } from 'node:fs'
import { type Static, Type } from '@sinclair/typebox'
import type { ConfiguredModel } from '../core/models/configured-models.ts'
import { oneOf } from '../core/validation/validate.ts'
import type { AwsCredentials } from '../credentials/aws.ts'
import type { EntraCredentials, ServiceAccount } from '../credentials/credential-cache.ts'
import { baseUrlProblem, withoutTrailingSlash } from './addresses.ts'
import type { EnvironmentReader } from './environment.ts'
import { keyVariableSchema } from './key-pools.ts'
import { parseServiceAccount } from './service-account.ts'

const identifier = Type.String({ pattern: '^[A-Za-z0-9][A-Za-z0-9_.:-]{0,127}$', description: 'an identifier' })
const url = Type.String({ minLength: 8, maxLength: 2_048 })
const variable = keyVariableSchema

/** Fields of a provider with a `type`. Which of them a type takes is checked in `readCloud`. */
export const cloudFields = {
  type: Type.Optional(oneOf(['azure', 'bedrock', 'vertex'])),
  api_version: Type.Optional(
    Type.String({ pattern: '^\\d{4}-\\d{2}-\\d{2}(-preview)?$', description: 'an API version: YYYY-MM-DD' }),
  ),
  tenant_id: Type.Optional(identifier),
  client_id: Type.Optional(identifier),
  client_secret_env: Type.Optional(variable),
  login_url: Type.Optional(url),
  scope: Type.Optional(url),
  region: Type.Optional(Type.String({ pattern: '^[a-z]{2,3}(-[a-z]+)+-\\d{1,2}$', description: 'a region of AWS' })),
  access_key_id_env: Type.Optional(variable),
  secret_access_key_env: Type.Optional(variable),
  session_token_env: Type.Optional(variable),
  role_arn: Type.Optional(
    Type.String({ pattern: '^arn:[\\w-]+:iam::\\d{12}:role/.{1,512}$', description: 'the ARN of a role' }),
  ),
  web_identity_token_file: Type.Optional(Type.String({ minLength: 1, maxLength: 4_096 })),
  sts_url: Type.Optional(url),
  project: Type.Optional(identifier),
  location: Type.Optional(
    Type.String({ pattern: '^[a-z][a-z0-9-]{1,31}$', description: 'a location of Google Cloud' }),
  ),
  service_account_env: Type.Optional(variable),
}

type CloudFields = { readonly [Name in keyof typeof cloudFields]?: Static<(typeof cloudFields)[Name]> }
export type CloudType = 'azure' | 'bedrock' | 'vertex'

/** Credentials instead of a key: for fetched tokens, or for signatures. */
export type CloudCredentials =
  | { readonly kind: 'entra'; readonly entra: EntraCredentials }
  | { readonly kind: 'aws'; readonly aws: AwsCredentials; readonly region: string }
  | { readonly kind: 'service_account'; readonly account: ServiceAccount }

export type CloudSettings = {
  /** `api-version` of Azure's deployments API; null = the v1 API, or another cloud. */
  readonly apiVersion: string | null
  /** null = the provider's key is sent. */
  readonly credentials: CloudCredentials | null
}

type CloudPlace = { readonly baseUrl: string; readonly apiKey: string | null; readonly cloud: CloudSettings }

type CloudProvider = CloudFields & {
  readonly base_url?: string
  readonly api_key_env?: string
  readonly keys?: readonly unknown[]
}

type CloudRow = {
  readonly read: EnvironmentReader
  readonly provider: CloudProvider
  /** Adds a line about this provider. */
  readonly problem: (text: string) => void
  /** Reads the secret in a named variable, and reports one that is not set. */
  readonly secretIn: (name: string | undefined) => string | null
}

const commonFields = ['id', 'type', 'base_url', 'models', 'hosts']
const keyFields = ['api_key_env', 'keys', 'accounts']
const fieldsTable: Readonly<Record<CloudType, readonly string[]>> = {
  azure: [
    ...keyFields,
    ...['api_version', 'tenant_id', 'client_id', 'client_secret_env', 'login_url', 'scope', 'embedding_models'],
    'extra_fields',
  ],
  bedrock: [
    ...keyFields,
    ...['region', 'access_key_id_env', 'secret_access_key_env', 'session_token_env'],
    ...['role_arn', 'web_identity_token_file', 'sts_url'],
  ],
  vertex: ['project', 'location', 'service_account_env'],
}

/** Returns the fields that the provider has and its type does not take. */
export function strayCloudFields(provider: CloudProvider): readonly string[] {
  const { type } = provider
  const names = Object.keys(provider)
  if (type === undefined) return names.filter(name => Object.hasOwn(cloudFields, name))
  return names.filter(name => !commonFields.includes(name) && !fieldsTable[type].includes(name))
}

/** Reads a provider with a `type`; null = it cannot be called. Adds its problems, without secrets. */
export function readCloud(
  read: EnvironmentReader,
  type: CloudType,
  provider: CloudProvider,
  problem: CloudRow['problem'],
): CloudPlace | null {
  const secretIn = (name: string | undefined) => {
    if (name === undefined) return null
    const secret = read.secret(name)
    if (secret === null) problem(`names ${name}, which is not set`)
    return secret
  }
  for (const [name, value] of Object.entries({
    base_url: provider.base_url,
    login_url: provider.login_url,
    sts_url: provider.sts_url,
  })) {
    const wrong = value === undefined ? null : baseUrlProblem(value)
    if (wrong !== null) problem(`${name} ${wrong}`)
  }
  const settings = { read, provider, problem, secretIn }
  switch (type) {
    case 'azure':
      return readAzure(settings)
    case 'bedrock':
      return readBedrock(settings)
    case 'vertex':
      return readVertex(settings)
  }
}

function readAzure({ provider, problem, secretIn }: CloudRow): CloudPlace | null {
  const { base_url: baseUrl, api_version: apiVersion = null, tenant_id, client_id, client_secret_env } = provider
  const apiKey = secretIn(provider.api_key_env)
  const clientSecret = secretIn(client_secret_env)
  if (baseUrl === undefined) problem('has no `base_url`; add that of the Azure resource')
  const entra = [tenant_id, client_id, client_secret_env]
  const hasKey = provider.api_key_env !== undefined || provider.keys !== undefined
  if (entra.some(field => field !== undefined) && entra.includes(undefined))
    problem('needs all of `tenant_id`, `client_id` and `client_secret_env`')
  else if (hasKey === (tenant_id !== undefined))
    problem('must have either `api_key_env` (or `keys`), or `tenant_id`, `client_id` and `client_secret_env`')
  if (baseUrl === undefined) return null
  const credentials: CloudCredentials | null =
    tenant_id === undefined || client_id === undefined || clientSecret === null
      ? null
      : {
          kind: 'entra',
          entra: {
            authority: withoutTrailingSlash(provider.login_url ?? 'https://login.microsoftonline.com'),
            tenantId: tenant_id,
            clientId: client_id,
            clientSecret,
            scope: provider.scope ?? 'https://cognitiveservices.azure.com/.default',
          },
        }
  // As Azure's portal shows it, with the path of the API.
  const resource = withoutTrailingSlash(baseUrl).replace(/\/openai(\/v1)?$/, '')
  return { baseUrl: resource, apiKey, cloud: { apiVersion, credentials } }
}

/** Explicit fields win over the environment that AWS's own clients read. */
function readBedrock(settings: CloudRow): CloudPlace | null {
  const { read, provider, problem, secretIn } = settings
  const region = provider.region ?? read.text('AWS_REGION') ?? read.text('AWS_DEFAULT_REGION')
  if (region === null) {
    problem('has no `region`; add it, or set AWS_REGION')
    return null
  }
  const suffix = region.startsWith('cn-') ? '.cn' : ''
  const baseUrl = withoutTrailingSlash(provider.base_url ?? `https://bedrock-runtime.${region}.amazonaws.com${suffix}`)
  const stsUrl = withoutTrailingSlash(provider.sts_url ?? `https://sts.${region}.amazonaws.com${suffix}`)
  const isNamed = [
    provider.api_key_env,
    provider.keys,
    provider.access_key_id_env,
    provider.secret_access_key_env,
    provider.role_arn,
  ].some(field => field !== undefined)
  const apiKey = isNamed ? secretIn(provider.api_key_env) : read.secret('AWS_BEARER_TOKEN_BEDROCK')
  const place = { baseUrl, apiKey }
  if (apiKey !== null || provider.keys !== undefined || provider.api_key_env !== undefined)
    return { ...place, cloud: { apiVersion: null, credentials: null } }
  const aws = awsKeys(settings) ?? webIdentity(settings, stsUrl)
  if (aws === null) {
    problem(
      'has no credentials; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_ROLE_ARN and AWS_WEB_IDENTITY_TOKEN_FILE, or AWS_BEARER_TOKEN_BEDROCK, or name others',
    )
    return null
  }
  return { ...place, cloud: { apiVersion: null, credentials: { kind: 'aws', aws, region } } }
}

function awsKeys({ read, provider, problem, secretIn }: CloudRow): AwsCredentials | null {
  const { access_key_id_env: idName, secret_access_key_env: secretName, session_token_env: tokenName } = provider
  if (provider.role_arn !== undefined && idName === undefined) return null
  if ((idName === undefined) !== (secretName === undefined))
    problem('needs both `access_key_id_env` and `secret_access_key_env`')
  const isNamed = idName !== undefined
  const accessKeyId = isNamed ? secretIn(idName) : read.secret('AWS_ACCESS_KEY_ID')
  const secretAccessKey = isNamed ? secretIn(secretName) : read.secret('AWS_SECRET_ACCESS_KEY')
  const sessionToken = tokenName === undefined && !isNamed ? read.secret('AWS_SESSION_TOKEN') : secretIn(tokenName)
  if (accessKeyId === null || secretAccessKey === null) return null
  return { kind: 'keys', keys: { accessKeyId, secretAccessKey, sessionToken } }
}

function webIdentity({ read, provider }: CloudRow, stsUrl: string): AwsCredentials | null {
  const roleArn = provider.role_arn ?? read.text('AWS_ROLE_ARN')
  const tokenFile = provider.web_identity_token_file ?? read.text('AWS_WEB_IDENTITY_TOKEN_FILE')
  if (roleArn === null || tokenFile === null) return null
  const sessionName = read.text('AWS_ROLE_SESSION_NAME') ?? 'gateway-ai'
  return { kind: 'web_identity', identity: { stsUrl, roleArn, sessionName, tokenFile } }
}

function readVertex({ read, provider, problem, secretIn }: CloudRow): CloudPlace | null {
  const { location, service_account_env: name } = provider
  const text = name === undefined ? readKeyFile(read, problem) : secretIn(name)
  const account = text === null ? null : parseServiceAccount(text, problem)
  if (location === undefined) problem('has no `location`; add one, for example "global"')
  const project = provider.project ?? account?.project ?? null
  if (account !== null && project === null) problem('has no `project`; add it')
  if (account === null || location === undefined || project === null) return null
  const origin = withoutTrailingSlash(provider.base_url ?? vertexOrigin(location))
  return {
    baseUrl: `${origin}/v1/projects/${project}/locations/${location}`,
    apiKey: null,
    cloud: { apiVersion: null, credentials: { kind: 'service_account', account: account.account } },
  }
}

/** Multi-region locations have hosts of another form. */
function vertexOrigin(location: string): string {
  if (location === 'global') return 'https://aiplatform.googleapis.com'
  return location === 'us' || location === 'eu'
    ? `https://aiplatform.${location}.rep.googleapis.com`
    : `https://${location}-aiplatform.googleapis.com`
}

function readKeyFile(read: EnvironmentReader, problem: CloudRow['problem']): string | null {
  const path = read.text('GOOGLE_APPLICATION_CREDENTIALS')
  if (path === null) {
    problem('has no credentials; set GOOGLE_APPLICATION_CREDENTIALS, or add `service_account_env`')
    return null
  }
  try {
    return readFileSync(path, 'utf8')
  } catch {
    problem(`GOOGLE_APPLICATION_CREDENTIALS: cannot read ${path}`)
    return null
  }
}

/** Returns a model with the defaults of its cloud. Values of the configuration win. */
export function withCloudDefaults(type: CloudType, row: ConfiguredModel): ConfiguredModel {
  switch (type) {
    case 'azure':
      return {
        ...row,
        parameters: { output_cap_field: 'max_completion_tokens', stream_options: true, ...row.parameters },
      }
    case 'bedrock':
      // Converse and Claude on Bedrock take images only inline.
      return {
        ...row,
        capabilities: { image_urls: false, ...row.capabilities },
        parameters: { maximum_temperature: 1, prefill: false, ...row.parameters },
      }
    case 'vertex':
      return {
        ...row,
        capabilities: { image_urls: !row.id.startsWith('claude-'), ...row.capabilities },
        ...(row.id.startsWith('claude-') && {
          parameters: { maximum_temperature: 1, prefill: false, ...row.parameters },
        }),
      }
  }
}
