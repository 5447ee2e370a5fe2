/** Providers on a cloud in the configuration: what each needs, and the list of problems. */
import { afterAll, describe, expect, test } from 'bun:test'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Environment, readConfig } from '../../src/config/config.ts'
import { privateKeyPem } from '../harness/clouds.ts'

const folder = mkdtempSync(join(tmpdir(), 'gateway-clouds-'))
afterAll(() => rmSync(folder, { recursive: true }))

const fileWith = (name: string, content: unknown) => {
  const path = join(folder, name)
  writeFileSync(path, typeof content === 'string' ? content : JSON.stringify(content))
  return path
}

const models = [{ id: 'm', pricing: { input_per_mtok: 1, output_per_mtok: 2 } }]
const serviceAccount = {
  type: 'service_account',
  project_id: 'project-1',
  private_key_id: 'k1',
  private_key: privateKeyPem,
  client_email: 'gateway@project-1.iam.gserviceaccount.com',
}

function read(provider: Record<string, unknown>, environment: Environment = {}) {
  const file = fileWith('config.json', { providers: [{ id: 'cloud', models, ...provider }] })
  return readConfig({ GATEWAY_CONFIG: file, GATEWAY_DATA_DIR: folder, ...environment })
}

function findSettings(provider: Record<string, unknown>, environment: Environment = {}) {
  const [settings] = read(provider, environment).providers
  return settings
}

/** Returns the lines about the provider, without their common beginning. */
function getProblems(provider: Record<string, unknown>, environment: Environment = {}): readonly string[] {
  try {
    read(provider, environment)
    return []
  } catch (cause) {
    return String(cause)
      .split('\n')
      .flatMap(line => /GATEWAY_CONFIG: (?:provider "cloud" )?(.*)$/.exec(line)?.[1] ?? [])
  }
}

describe('Azure', () => {
  const azure = { type: 'azure', base_url: 'https://r.openai.azure.com/openai/v1/' }

  test('takes a key, or an app registration of Entra ID', () => {
    expect(findSettings({ ...azure, api_key_env: 'KEY', api_version: '2024-10-21' }, { KEY: 'k' })).toMatchObject({
      format: 'azure',
      baseUrl: 'https://r.openai.azure.com',
      apiKey: 'k',
      cloud: { apiVersion: '2024-10-21', credentials: null },
    })
    const entra = { ...azure, tenant_id: 't', client_id: 'c', client_secret_env: 'SECRET' }
    const secretFile = fileWith('secret', 's\n')
    expect(findSettings(entra, { SECRET_FILE: secretFile })).toMatchObject({
      apiKey: null,
      cloud: {
        apiVersion: null,
        credentials: {
          kind: 'entra',
          entra: {
            authority: 'https://login.microsoftonline.com',
            tenantId: 't',
            clientId: 'c',
            clientSecret: 's',
            scope: 'https://cognitiveservices.azure.com/.default',
          },
        },
      },
    })
  })

  test('takes a pool of keys', () => {
    const keys = [
      { name: 'a', api_key_env: 'A' },
      { name: 'b', api_key_env: 'B' },
    ]
    expect(findSettings({ ...azure, keys }, { A: 'x', B: 'y' })?.pool?.keys).toHaveLength(2)
  })

  test('reports missing and superfluous fields', () => {
    const oneOfTwo = 'must have either `api_key_env` (or `keys`), or `tenant_id`, `client_id` and `client_secret_env`'
    expect(getProblems({ type: 'azure' })).toEqual(['has no `base_url`; add that of the Azure resource', oneOfTwo])
    expect(getProblems(azure)).toEqual([oneOfTwo])
    expect(getProblems({ ...azure, tenant_id: 't' })).toEqual([
      'needs all of `tenant_id`, `client_id` and `client_secret_env`',
    ])
    expect(getProblems({ ...azure, api_key_env: 'KEY', region: 'us-east-1' })).toEqual([
      'of type "azure" takes no `region`; remove it',
      'names KEY, which is not set',
    ])
    expect(getProblems({ ...azure, base_url: 'http://public.example', api_key_env: 'KEY' }, { KEY: 'k' })).toEqual([
      'base_url must be https; plain http is allowed only on loopback or private networks',
    ])
  })
})

describe('Bedrock', () => {
  const bedrock = { type: 'bedrock', region: 'eu-central-1' }
  const aws = { AWS_ACCESS_KEY_ID: 'AKIA', AWS_SECRET_ACCESS_KEY: 'secret' }
  const findCredentials = (provider: Record<string, unknown>, environment: Environment) =>
    findSettings(provider, environment)?.cloud?.credentials

  test('reads the variables of AWS’s own clients', () => {
    expect(findSettings(bedrock, aws)).toMatchObject({
      baseUrl: 'https://bedrock-runtime.eu-central-1.amazonaws.com',
      apiKey: null,
      cloud: { credentials: { aws: { keys: { accessKeyId: 'AKIA', sessionToken: null } }, region: 'eu-central-1' } },
    })
    expect(
      findCredentials({ type: 'bedrock' }, { ...aws, AWS_REGION: 'us-west-2', AWS_SESSION_TOKEN: 't' }),
    ).toMatchObject({
      aws: { kind: 'keys', keys: { sessionToken: 't' } },
      region: 'us-west-2',
    })
    const role = { AWS_ROLE_ARN: 'arn:aws:iam::123456789012:role/r', AWS_WEB_IDENTITY_TOKEN_FILE: '/var/token' }
    expect(findCredentials(bedrock, role)).toMatchObject({
      aws: {
        kind: 'web_identity',
        identity: {
          stsUrl: 'https://sts.eu-central-1.amazonaws.com',
          tokenFile: '/var/token',
          sessionName: 'gateway-ai',
        },
      },
    })
    expect(findSettings(bedrock, { AWS_BEARER_TOKEN_BEDROCK: 'b' })).toMatchObject({
      apiKey: 'b',
      cloud: { credentials: null },
    })
  })

  test('prefers credentials that the provider names', () => {
    const named = { ...bedrock, access_key_id_env: 'ID', secret_access_key_env: 'SECRET' }
    expect(findCredentials(named, { ...aws, ID: 'OTHER', SECRET: 's', AWS_SESSION_TOKEN: 't' })).toMatchObject({
      aws: { keys: { accessKeyId: 'OTHER', sessionToken: null } },
    })
    const role = { role_arn: 'arn:aws:iam::123456789012:role/r', web_identity_token_file: '/token' }
    expect(findCredentials({ ...bedrock, ...role }, aws)).toMatchObject({ aws: { kind: 'web_identity' } })
    expect(findSettings({ ...bedrock, api_key_env: 'KEY' }, { ...aws, KEY: 'k' })).toMatchObject({ apiKey: 'k' })
  })

  test('reports missing fields', () => {
    expect(getProblems({ type: 'bedrock' }, aws)).toEqual(['has no `region`; add it, or set AWS_REGION'])
    expect(getProblems(bedrock)[0]).toStartWith('has no credentials; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY')
    expect(getProblems({ ...bedrock, access_key_id_env: 'ID' }, { ID: 'x' })[0]).toBe(
      'needs both `access_key_id_env` and `secret_access_key_env`',
    )
    expect(getProblems({ ...bedrock, region: 'Frankfurt' }, aws)[0]).toContain('must be a region of AWS')
  })

  test('sends no image URLs to its own models', () => {
    expect(read(bedrock, aws).extraModels[0]?.row).toMatchObject({ capabilities: { image_urls: false } })
  })
})

describe('Vertex', () => {
  const vertex = { type: 'vertex', location: 'europe-west1' }

  test('takes the key file of a service account', () => {
    const path = fileWith('account.json', serviceAccount)
    expect(findSettings(vertex, { GOOGLE_APPLICATION_CREDENTIALS: path })).toMatchObject({
      baseUrl: 'https://europe-west1-aiplatform.googleapis.com/v1/projects/project-1/locations/europe-west1',
      cloud: { credentials: { account: { tokenUrl: 'https://oauth2.googleapis.com/token', privateKeyId: 'k1' } } },
    })
    const named = { ...vertex, location: 'global', project: 'other', service_account_env: 'ACCOUNT' }
    expect(findSettings(named, { ACCOUNT: JSON.stringify(serviceAccount) })).toMatchObject({
      baseUrl: 'https://aiplatform.googleapis.com/v1/projects/other/locations/global',
    })
  })

  test('reports missing fields without the file’s content', () => {
    const named = { ...vertex, service_account_env: 'ACCOUNT' }
    const given = (account: unknown) =>
      getProblems(named, { ACCOUNT: typeof account === 'string' ? account : JSON.stringify(account) })
    expect(getProblems({ type: 'vertex' })).toEqual([
      'has no credentials; set GOOGLE_APPLICATION_CREDENTIALS, or add `service_account_env`',
      'has no `location`; add one, for example "global"',
    ])
    expect(given('{"private_key": secret')).toEqual(['the service account is not valid JSON'])
    expect(given({ ...serviceAccount, private_key: 'secret' })).toEqual([
      'the service account: private_key is not a private key in PEM',
    ])
    expect(given({ type: 'authorized_user' })).toEqual([
      'the service account needs "type": "service_account", `client_email` and `private_key`',
    ])
    expect(given({ ...serviceAccount, token_uri: 'http://attacker.example/token' })[0]).toContain(
      'token_uri must be https',
    )
    expect(given({ ...serviceAccount, project_id: '' })).toEqual(['has no `project`; add it'])
  })
})

test('configuration: rejects a field of a cloud without a type', () => {
  const base = { base_url: 'https://x.example/v1' }
  expect(getProblems({ ...base, region: 'us-east-1' })).toEqual([
    'has `region` and no `type`; add "azure", "bedrock" or "vertex", or remove the field',
  ])
  expect(getProblems({ ...base, type: 'oracle' })[0]).toContain('providers.0.type')
})
