/** Models of local servers: listed at the start, after an outage, and when they change. */
import { describe, expect, test } from 'bun:test'
import { openCatalog } from '../../src/compose/models.ts'
import { type Environment, readConfig } from '../../src/config/config.ts'
import { type Catalog, fullName } from '../../src/core/models/models.ts'
import { getProvider } from '../request/support.ts'

type Reply = Response | Error | 'hangs'

/** A catalog over scripted servers, and a clock whose timers a test runs. */
async function rig(environment: Environment, replyTo: (url: string, init: RequestInit) => Reply) {
  const timers = new Map<object, { readonly milliseconds: number; readonly action: () => void }>()
  const logged: string[] = []
  const log = (event: string) => void logged.push(event)
  const config = readConfig({ GATEWAY_DATA_DIR: '/tmp', ...environment })
  const undo = new AsyncDisposableStack()
  const deps = {
    endpoints: new Map(
      config.providers.map(({ id, baseUrl, apiKey }) => [id, { ...getProvider(id), access: { baseUrl, apiKey } }]),
    ),
    log: { info: log, warn: log },
    clock: {
      after(milliseconds: number, action: () => void) {
        const key = {}
        timers.set(key, { milliseconds, action })
        return () => void timers.delete(key)
      },
    },
    network: {
      fetch: async (url: string, init: RequestInit) => {
        const reply = replyTo(url, init)
        if (reply instanceof Response) return reply
        if (reply instanceof Error) throw reply
        return await new Promise<Response>((_, reject) =>
          init.signal?.addEventListener('abort', () => reject(new Error('aborted'))),
        )
      },
    },
  }
  /** Runs the timers of this length, and what follows from them. */
  const run = async (milliseconds: number) => {
    for (const [key, timer] of [...timers])
      if (timer.milliseconds === milliseconds) {
        timers.delete(key)
        timer.action()
      }
    for (let turn = 0; turn < 20; turn++) await Promise.resolve()
    await Bun.sleep(0)
  }
  const catalog = openCatalog(config, deps, undo).then(opened => opened.catalog)
  return { catalog, run, undo, logged, timers }
}

const getList = (...rows: readonly object[]) => Response.json({ object: 'list', data: rows })
const namesIn = ({ list }: Catalog) => list.map(fullName)

describe('discovery', () => {
  test('lists the models of each server at no price, without embedding models', async () => {
    const urls: string[] = []
    const environment = {
      OLLAMA_BASE_URL: 'http://127.0.0.1:11434',
      VLLM_BASE_URL: 'http://10.0.0.7:8000/v1',
      VLLM_API_KEY: 'k',
    }
    const { catalog, undo } = await rig(environment, (url, init) => {
      urls.push(`${url} ${new Headers(init.headers).get('authorization') ?? ''}`)
      return url.includes('11434')
        ? getList({ id: 'llama3.3:70b' }, { id: 'nomic-embed-text' }, { id: 'llama3.3:70b' }, { id: 7 }, {})
        : getList({ id: 'Qwen/Qwen3-32B', max_model_len: 40_960 })
    })
    const opened = await catalog
    expect(urls.toSorted()).toEqual(['http://10.0.0.7:8000/v1/models Bearer k', 'http://127.0.0.1:11434/v1/models '])
    expect(namesIn(opened)).toEqual(['ollama/llama3.3:70b', 'vllm/Qwen/Qwen3-32B'])
    expect(opened.resolve('vllm/qwen/qwen3-32b')).toMatchObject({
      contextWindow: 40_960,
      pricing: { input: 0, output: 0 },
      capabilities: { imageUrls: false, streaming: true },
    })
    await undo.disposeAsync()
  })

  test('tries a server that is down every 10 s, and then serves its models', async () => {
    let reply: Reply = new Error('refused')
    const { catalog, run, logged } = await rig({ LM_STUDIO_BASE_URL: 'http://127.0.0.1:1234' }, () => reply)
    const opened = await catalog
    expect(opened.list).toEqual([])
    await run(10_000)
    await run(10_000)
    expect(logged).toEqual(['model_discovery_failed'])
    reply = getList({ id: 'gemma', max_context_length: 8_192 })
    await run(10_000)
    expect(namesIn(opened)).toEqual(['lm-studio/gemma'])
    expect(opened.resolve('gemma')?.contextWindow).toBe(8_192)
  })

  test('follows changes each minute, and keeps the models of a server that fails', async () => {
    let reply: () => Reply = () => getList({ id: 'a' })
    const { catalog, run, undo, timers } = await rig({ OLLAMA_BASE_URL: 'http://127.0.0.1:11434' }, () => reply())
    const opened = await catalog
    const before = opened.list
    await run(60_000)
    expect(opened.list).toBe(before)
    reply = () => getList({ id: 'a' }, { id: 'b' })
    await run(60_000)
    expect(namesIn(opened)).toEqual(['ollama/a', 'ollama/b'])
    for (const broken of [
      new Error('refused'),
      new Response('oops', { status: 500 }),
      new Response('no JSON'),
      Response.json({}),
    ]) {
      reply = () => broken
      await run(60_000)
      await run(10_000)
      expect(namesIn(opened)).toEqual(['ollama/a', 'ollama/b'])
    }
    await undo.disposeAsync()
    expect(timers.size).toBe(0)
  })

  test('waits at most 2 s for a server that does not answer', async () => {
    const { catalog, run } = await rig({ OLLAMA_BASE_URL: 'http://127.0.0.1:11434' }, () => 'hangs')
    await run(2_000)
    expect((await catalog).list).toEqual([])
  })
})
