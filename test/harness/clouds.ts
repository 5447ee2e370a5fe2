/** Simulated clouds with their accounts, and one attempt at a model on them. */
import { generateKeyPairSync } from 'node:crypto'
import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Model } from '../../src/core/models/models.ts'
import type { Clock, Network } from '../../src/core/ports.ts'
import { systemClock } from '../../src/database/clock.ts'
import { readCompatible } from '../../src/dialects/chat-completions/request.ts'
import { catalog } from '../../src/models/catalog.ts'
import type { Access, Provider, ProviderFailure } from '../../src/providers/provider.ts'
import { UpstreamAttempt } from '../../src/request/attempt.ts'
import { send } from '../../src/simulator/reply.ts'
import { createResponder } from '../../src/simulator/responder.ts'
import { startServer } from '../../src/simulator/server.ts'
import { systemNetwork } from '../../src/web/network.ts'
import { getCandidate, getProvider } from '../request/support.ts'
import { type AnswerPart, recordedAnswer } from './answer-parts.ts'
import { findCloudFormat } from './clouds/formats.ts'
import { createCloudIdentity } from './clouds/identity.ts'
import { modelWith } from './model.ts'

const { publicKey, privateKey } = generateKeyPairSync('rsa', { modulusLength: 2_048 })

export const accounts = {
  aws: {
    region: 'eu-central-1',
    accessKeyId: 'AKIASIMULATED0000001',
    secretAccessKey: 'simulated/secret+of/the+tests',
    roleArn: 'arn:aws:iam::123456789012:role/gateway',
    webIdentityToken: 'simulated-web-identity',
  },
  azure: {
    apiKey: 'simulated-azure-key',
    tenantId: 'tenant-1',
    clientId: 'client-1',
    clientSecret: 'simulated-secret',
  },
  google: { clientEmail: 'gateway@project.iam.gserviceaccount.com', publicKey, project: 'project-1' },
  tokenLifetimeMs: 3_600_000,
}

export const privateKeyPem = privateKey.export({ type: 'pkcs8', format: 'pem' }).toString()

/** Returns the path of a file with this content. */
export function fileWith(content: string): string {
  const path = join(mkdtempSync(join(tmpdir(), 'gateway-clouds-')), 'secret')
  writeFileSync(path, content)
  return path
}

/** Returns the path of a service account's key file. */
export function serviceAccountFile(): string {
  const { clientEmail: client_email, project: project_id } = accounts.google
  return fileWith(JSON.stringify({ type: 'service_account', client_email, project_id, private_key: privateKeyPem }))
}

/** Returns a clock that runs like the system's and can be moved; `move` shifts it by milliseconds. */
export function movableClock() {
  let offset = 0
  const clock: Clock = {
    ...systemClock,
    now: () => systemClock.now() + offset,
    monotonic: () => systemClock.monotonic() + offset,
  }
  const move = (milliseconds: number) => {
    offset += milliseconds
  }
  return { clock, move }
}

/** Starts the simulated clouds: their formats are those of the simulator, behind their own logins. */
export function startClouds(clock: { now(): number } = systemClock) {
  const respond = createResponder({ clock, random: Math.random })
  const identity = createCloudIdentity(accounts, clock)
  const server = startServer(exchange => {
    const { request } = exchange
    return send(exchange, identity.tokenReply(request) ?? respond(request, findCloudFormat(request, identity)))
  })
  return {
    ...identity,
    url: server.url,
    urls: {
      azure: `${server.url}/azure`,
      bedrock: `${server.url}/bedrock`,
      vertex: `${server.url}/vertex/v1/projects/${accounts.google.project}/locations/global`,
    },
    stats: server.stats,
    stop: server.stop,
  }
}

export type Clouds = ReturnType<typeof startClouds>

const deadlines = {
  connectMs: 5_000,
  firstByteMs: 20_000,
  silenceMs: 20_000,
  firstContentMs: 20_000,
  firstContentReasoningMs: 20_000,
  totalMs: 25_000,
}

export type Outcome = {
  readonly parts: readonly AnswerPart[]
  readonly text: string
  readonly failure: ProviderFailure | null
  readonly ended: boolean
  readonly droppedParameters: readonly string[]
}

type Asked = {
  readonly provider: Provider
  readonly access: Access
  readonly model: Model
  readonly body?: Readonly<Record<string, unknown>>
  readonly clock?: Clock
  readonly network?: Network
}

/** Makes one attempt and reads it to its end. `body` is one of Chat Completions. */
export async function attemptAt({
  provider,
  access,
  model,
  body = {},
  clock = systemClock,
  network = systemNetwork,
}: Asked): Promise<Outcome> {
  const { request } = readCompatible(
    { prompt: 'Say hello. [[sim:tokens=40]]', stream: true, ...body },
    new Headers(),
    10,
  )
  const caller = new AbortController()
  const { answer: response, drain } = recordedAnswer(request)
  const attempt = new UpstreamAttempt(
    { clock, network },
    {
      candidate: { ...getCandidate(model), endpoint: { ...getProvider(model.provider), provider, access } },
      request: { request, model, outputCap: 2_000, stream: request.stream !== null },
      deadlines,
      deadlineAt: clock.monotonic() + deadlines.totalMs,
      signal: caller.signal,
      response,
    },
  )
  while (!response.isOver() && (await attempt.next()));
  const { ended, failure, droppedParameters } = response
  attempt.close(ended)
  const parts = drain()
  return {
    parts,
    text: parts.map(part => (part.type === 'text' ? part.text : '')).join(''),
    failure,
    ended,
    droppedParameters,
  }
}

/** Returns a catalog model under the name that a host gives it. */
export function hostedAs(provider: string, id: string): Model {
  return { ...catalogModel(provider), id }
}

/** Returns a model of the catalog. */
export function catalogModel(provider: string): Model {
  const model = catalog.find(item => item.provider === provider && !item.deprecated && item.capabilities.streaming)
  if (model === undefined) throw new Error('the catalog has changed: choose another provider')
  return model
}

/** Returns a model that only a cloud offers. */
export function ownModel(provider: string, id: string): Model {
  const like = hostedAs('openai', id)
  return modelWith({
    id,
    provider,
    parameters: {
      ...like.parameters,
      sampling: 'accepted',
      maximumStops: 4,
      forcedToolChoice: 'accepted',
      prefill: false,
      efforts: [],
      reasoning: { kind: 'none' },
      responseFormat: 'json_schema',
    },
  })
}
