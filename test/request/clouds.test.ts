/** A gateway with one model on several clouds: who serves it, and who takes over when a cloud refuses the gateway. */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { fullName } from '../../src/core/models/models.ts'
import { readReply } from '../faults/support.ts'
import { accounts, type Clouds, catalogModel, fileWith, privateKeyPem, startClouds } from '../harness/clouds.ts'
import { type Gateway, startGateway } from '../harness/gateway.ts'
import { sendRequest } from '../harness/users.ts'

let simulator: Clouds
let gateway: Gateway

/** A local server with one model, which it lists. */
const local = Bun.serve({
  port: 0,
  fetch: ({ url }) =>
    url.endsWith('/v1/models')
      ? Response.json({ object: 'list', data: [{ id: 'local-model', object: 'model' }] })
      : Response.json({
          id: 'c1',
          choices: [
            { index: 0, message: { role: 'assistant', content: 'Hello from this machine.' }, finish_reason: 'stop' },
          ],
          usage: { prompt_tokens: 3, completion_tokens: 6, total_tokens: 9 },
        }),
})

const getFullName = (provider: string) => fullName(catalogModel(provider))

beforeAll(async () => {
  simulator = startClouds()
  const { aws, azure, google } = accounts
  const anthropicModel = getFullName('anthropic')
  const providers = [
    {
      id: 'azure-east',
      type: 'azure',
      base_url: simulator.urls.azure,
      tenant_id: azure.tenantId,
      client_id: azure.clientId,
      client_secret_env: 'AZURE_CLIENT_SECRET',
      login_url: simulator.url,
      models: ['our-gpt', 'our-codex'].map(id => ({ id, pricing: { input_per_mtok: 1, output_per_mtok: 2 } })),
    },
    {
      id: 'bedrock-broken',
      type: 'bedrock',
      region: aws.region,
      base_url: simulator.urls.bedrock,
      access_key_id_env: 'BROKEN_ID',
      secret_access_key_env: 'BROKEN_SECRET',
      hosts: [{ model: anthropicModel, id: 'us.anthropic.claude-simulated-v1:0' }],
    },
    {
      id: 'bedrock-eu',
      type: 'bedrock',
      region: aws.region,
      base_url: simulator.urls.bedrock,
      role_arn: aws.roleArn,
      web_identity_token_file: fileWith(aws.webIdentityToken),
      sts_url: `${simulator.url}/sts`,
      models: [{ id: 'amazon.nova-simulated-v1:0', pricing: { input_per_mtok: 1, output_per_mtok: 2 } }],
      hosts: [{ model: anthropicModel, id: 'eu.anthropic.claude-simulated-v1:0' }],
    },
    {
      id: 'vertex-eu',
      type: 'vertex',
      base_url: simulator.urls.vertex.replace(/\/v1\/.*/, ''),
      project: google.project,
      location: 'global',
      service_account_env: 'SERVICE_ACCOUNT',
      hosts: [{ model: getFullName('google'), id: 'gemini-simulated' }],
    },
  ]
  gateway = await startGateway(
    {
      OLLAMA_BASE_URL: `http://127.0.0.1:${local.port}`,
      AZURE_CLIENT_SECRET: azure.clientSecret,
      BROKEN_ID: aws.accessKeyId,
      BROKEN_SECRET: 'not-the-secret',
      SERVICE_ACCOUNT: JSON.stringify({
        type: 'service_account',
        client_email: google.clientEmail,
        private_key: privateKeyPem,
        token_uri: `${simulator.url}/google/token`,
      }),
    },
    { file: { providers } },
  )
})
afterAll(async () => {
  await gateway.stop()
  simulator.stop()
  await local.stop(true)
})

type Completion = {
  readonly choices: readonly { readonly message: { readonly content: string }; readonly finish_reason: string }[]
  readonly usage: { readonly completion_tokens: number }
}

function askFor(model: string) {
  const body = { model, messages: [{ role: 'user', content: 'Say hello. [[sim:tokens=40]]' }] }
  return sendRequest<Completion>(gateway, 'POST', '/v1/chat/completions', { token: gateway.key, body })
}

describe('a gateway with clouds', () => {
  test.each(['azure-east/our-gpt', 'bedrock-eu/amazon.nova-simulated-v1:0', 'google', 'ollama/local-model'])(
    'serves %s',
    async name => {
      const { status, body } = await askFor(name === 'google' ? getFullName(name) : name)
      expect({ status, body }).toMatchObject({ status: 200 })
      expect(body.choices[0]?.message.content.length).toBeGreaterThan(20)
      expect(body.usage.completion_tokens).toBeGreaterThan(0)
    },
  )

  test.each([
    ['Converse', 'bedrock-eu/amazon.nova-simulated-v1:0', 'cut_after'],
    ['Converse', 'bedrock-eu/amazon.nova-simulated-v1:0', 'error_after'],
    ['InvokeModel', 'anthropic', 'cut_after'],
    ['Responses', 'azure-east/our-codex', 'reset_after'],
    ['Responses', 'azure-east/our-codex', 'error_after'],
  ])('continues a text of %s (%s) after %s', async (_, name, fault) => {
    const stream = async (directives: string) => {
      const model = name === 'anthropic' ? getFullName(name) : name
      const prompt = `Say hello. [[sim:tokens=120]] ${directives}`
      const answer = await gateway.post('/api/v1/chat', { model, prompt, stream: true, fallback: 'same_model' })
      return readReply(answer.status, answer.headers, await answer.text())
    }
    const whole = await stream('')
    // Paced, since a cut that arrives with the first content is no cut of what was sent.
    const cut = await stream(`[[sim:${fault}=4, pace_ms=400, times=1, key=${name} ${fault}]]`)
    expect([whole.errors, cut.errors, whole.text.length > 200]).toEqual([[], [], true])
    expect([cut.text, cut.endings]).toEqual([whole.text, 1])
    expect([whole, cut].map(({ raw }) => raw.includes('"continued":['))).toEqual([false, true])
  })

  test('falls back to another host of the model when a cloud refuses the signature, without the secret in the log', async () => {
    const { status, body } = await askFor(getFullName('anthropic'))
    expect({ status, body }).toMatchObject({ status: 200 })
    expect(body.choices[0]?.finish_reason).toBe('stop')
    const refused = gateway.logLines.filter(line => line.includes('InvalidSignatureException'))
    expect(refused.length).toBeGreaterThan(0)
    const log = gateway.logLines.join('\n')
    for (const secret of [accounts.azure.clientSecret, 'not-the-secret', accounts.aws.webIdentityToken, 'PRIVATE KEY'])
      expect(log).not.toContain(secret)
  })
})
