/**
 * Discovers the models of local servers (`GET /v1/models`): at the start within a bound, and again in the background,
 * more often while a server is down. A server that fails keeps its former models.
 */

import { Value } from '@sinclair/typebox/value'
import { modelNameSchema } from '../core/models/configured-models.ts'
import type { Model } from '../core/models/models.ts'
import { type Clock, type Log, type Network, readBodyText } from '../core/ports.ts'

export type DiscoveryDeps = {
  /** Bound of one list in milliseconds; the start waits no longer. */
  readonly timeoutMs: number
  readonly clock: Pick<Clock, 'after'>
  readonly network: Pick<Network, 'fetch'>
  readonly log: Pick<Log, 'info' | 'warn'>
}

export type LocalServer = {
  /** ID of the provider. */
  readonly id: string
  /** URL of the list. */
  readonly url: string
  /** Returns the current key; null = none. */
  readonly apiKey: () => string | null
  /** Returns a listed model. `contextWindow` in tokens; null = the server does not say. */
  readonly toModel: (name: string, contextWindow: number | null) => Model
}

const maximumCharacters = 1_048_576
const maximumModels = 256
const downMs = 10_000
const upMs = 60_000

type Discovery = {
  /** Models of all servers that answered so far. */
  models(): readonly Model[]
  stop(): void
}

/** Lists the models of the servers, and calls `changed` after each later change. Never rejects. */
export async function discoverModels(
  deps: DiscoveryDeps,
  localServers: readonly LocalServer[],
  changed: () => void,
): Promise<Discovery> {
  const servers = localServers.map(server => new Server(deps, server))
  await Promise.all(servers.map(server => server.list()))
  for (const server of servers) server.watch(changed)
  return {
    models: () => servers.flatMap(({ models }) => models),
    stop: () => {
      for (const server of servers) server.stop()
    },
  }
}

class Server {
  models: readonly Model[] = []
  private names = ''
  private isUp = true
  private isStopped = false
  private cancel = () => {}

  constructor(
    private readonly deps: DiscoveryDeps,
    private readonly server: LocalServer,
  ) {}

  /** Returns true if the models changed. */
  async list(): Promise<boolean> {
    const { log } = this.deps
    const { id, toModel } = this.server
    const listed = await getList(this.deps, this.server)
    if (listed === null) {
      if (this.isUp) log.warn('model_discovery_failed', { provider: id, detail: 'GET /v1/models failed; retrying' })
      this.isUp = false
      return false
    }
    this.isUp = true
    const names = JSON.stringify(listed)
    if (names === this.names) return false
    this.names = names
    this.models = listed.map(({ name, contextWindow }) => toModel(name, contextWindow))
    log.info('models_discovered', { provider: id, count: listed.length })
    return true
  }

  watch(changed: () => void): void {
    if (this.isStopped) return
    this.cancel = this.deps.clock.after(this.isUp ? upMs : downMs, () => {
      void this.list().then(isChanged => {
        if (isChanged) changed()
        this.watch(changed)
      })
    })
  }

  stop(): void {
    this.isStopped = true
    this.cancel()
  }
}

type Listed = { readonly name: string; readonly contextWindow: number | null }

async function getList(
  { clock, network, timeoutMs }: DiscoveryDeps,
  { url, apiKey }: LocalServer,
): Promise<readonly Listed[] | null> {
  const abort = new AbortController()
  const cancel = clock.after(timeoutMs, () => abort.abort())
  try {
    const key = apiKey()
    const headers = { accept: 'application/json', ...(key !== null && { authorization: `Bearer ${key}` }) }
    const response = await network.fetch(url, { headers, signal: abort.signal, redirect: 'error' })
    return response.ok ? readList(await readBodyText(response, maximumCharacters)) : null
  } catch {
    return null
  } finally {
    cancel()
    abort.abort()
  }
}

/** Reads OpenAI's list. vLLM adds `max_model_len`, LM Studio and others `max_context_length` or `context_length`. */
function readList(text: string): readonly Listed[] | null {
  const body: unknown = JSON.parse(text)
  const data = typeof body === 'object' && body !== null && 'data' in body ? body.data : null
  if (!Array.isArray(data)) return null
  const listed = data.flatMap((row: unknown): Listed[] => {
    if (typeof row !== 'object' || row === null) return []
    const fields: Readonly<Record<string, unknown>> = { ...row }
    const { id, max_model_len, max_context_length, context_length } = fields
    // Embedding models answer 400 to a chat.
    if (!Value.Check(modelNameSchema, id) || /embed/i.test(id)) return []
    const contextWindow = [max_model_len, max_context_length, context_length].find(isContextWindow) ?? null
    return [{ name: id, contextWindow }]
  })
  const byName = new Map(listed.toReversed().map(item => [item.name, item]))
  return [...new Set(listed.map(({ name }) => name))].slice(0, maximumModels).flatMap(name => byName.get(name) ?? [])
}

function isContextWindow(value: unknown): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value > 0 && value <= 100_000_000
}
