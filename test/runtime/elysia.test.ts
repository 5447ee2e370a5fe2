/** Facts about Elysia that the code depends on, and requirements of every schema. */
import { describe, expect, test } from 'bun:test'
import { Kind, type TSchema, Type } from '@sinclair/typebox'
import { Elysia } from 'elysia'
import { compatibleSchema } from '../../src/dialects/chat-completions/request.ts'
import { estimateRequestSchema } from '../../src/dialects/native/estimate.ts'
import { nativeSchema } from '../../src/dialects/native/request.ts'
import { cpuMs } from '../harness/cpu.ts'
import { eventually } from '../harness/eventually.ts'
import { openRaw, rawText } from '../harness/raw.ts'

const post = (path: string, body: string) =>
  new Request(`http://localhost${path}`, { method: 'POST', body, headers: { 'content-type': 'application/json' } })

describe('Elysia with a route schema [E1]', () => {
  const schema = Type.Object({ name: Type.String({ maxLength: 5 }) }, { additionalProperties: false })

  test("runs a macro's resolve after validation, a scoped derive before it, and invalid JSON first", async () => {
    const byMacro = new Elysia({ normalize: false })
      .onError(({ code }) => new Response(String(code)))
      .macro({ guarded: { resolve: ({ status }) => status(401, 'macro') } })
      .post('/', () => 'in', { body: schema, guarded: true })
    const guard = new Elysia({ name: 'guard' }).derive({ as: 'scoped' }, ({ status }) => {
      throw status(401, 'derive')
    })
    const byDerive = new Elysia({ normalize: false })
      .onError(({ code, error }) => ('response' in error ? String(error.response) : String(code)))
      .use(guard)
      .post('/', () => 'in', { body: schema })
    expect(await (await byMacro.handle(post('/', '{"name":7}'))).text()).toBe('VALIDATION')
    expect(await (await byDerive.handle(post('/', '{"name":7}'))).text()).toBe('derive')
    expect(await (await byDerive.handle(post('/', '{'))).text()).toBe('PARSE')
  })

  test('leaves the body unread with `parse: none`', async () => {
    const app = new Elysia({ normalize: false }).post('/', ({ request, body }) => `${body} ${request.bodyUsed}`, {
      parse: 'none',
    })
    expect(await (await app.handle(post('/', '{'))).text()).toBe('undefined false')
  })

  test('repeats the input in its own error body, so `onError` replaces it [B17]', async () => {
    const answer = await new Elysia()
      .post('/', () => 'in', { body: schema })
      .handle(post('/', '{"name":"canary-is-long"}'))
    expect([answer.status, (await answer.text()).includes('canary-is-long')]).toEqual([422, true])
  })

  test('drops unknown fields silently unless `normalize` is off [B19]', async () => {
    const send = async (normalize: boolean) =>
      (
        await new Elysia({ normalize })
          .post('/', ({ body }) => Object.keys(body).join(), { body: schema })
          .handle(post('/', '{"name":"a","extra":1}'))
      ).status
    expect([await send(true), await send(false)]).toEqual([200, 422])
  })
})

test('Elysia: searches the path in the complete URL, so a short host moves it [B20]', async () => {
  const app = new Elysia().get('/admin', () => 'in')
  expect((await app.handle(new Request('http://x/ab/admin'))).status).toBe(200)
  expect((await app.handle(new Request('http://localhost/ab/admin'))).status).toBe(404)
})

describe('Elysia generator handlers [E2, E3]', () => {
  test('do not end on a client disconnect while waiting, but a Response does', async () => {
    const started: string[] = []
    let generatorEnded = false
    let cancelled = false
    const app = new Elysia()
      .get('/generator', async function* () {
        try {
          started.push('/generator')
          yield 'first'
          await new Promise(() => undefined)
        } finally {
          generatorEnded = true
        }
      })
      .get('/response', () => {
        started.push('/response')
        const body = new ReadableStream<Uint8Array>({
          pull: controller =>
            controller.desiredSize === 0 ? undefined : controller.enqueue(new TextEncoder().encode('x')),
          cancel: () => {
            cancelled = true
          },
        })
        return new Response(body)
      })
      .listen({ port: 0, hostname: '127.0.0.1' })
    for (const path of ['/generator', '/response']) {
      const { socket, received } = await openRaw(app.server?.port ?? 0, rawText(`GET ${path}`, { host: 'localhost' }))
      await eventually(() => started.includes(path) && received().includes(path === '/response' ? 'x' : 'first'))
      socket.destroy()
    }
    await eventually(() => cancelled, 10_000)
    expect([generatorEnded, cancelled]).toEqual([false, true])
    await app.server?.stop(true)
  })

  test('get a duplicate `data:` in their frames', async () => {
    const app = new Elysia().get('/', async function* ({ set }) {
      set.headers['content-type'] = 'text/event-stream'
      yield 'data: one\n\n'
      yield 'data: two\n\n'
    })
    expect(await (await app.handle(new Request('http://localhost/'))).text()).toContain('data: data: ')
  })
})

type Node = TSchema & { readonly [key: string]: unknown }

/** Yields every schema below this one with its path. */
function* walk(schema: Node, path: string): Generator<readonly [string, Node]> {
  yield [path, schema]
  for (const [name, child] of Object.entries((schema.properties ?? {}) as Record<string, Node>))
    yield* walk(child, `${path}.${name}`)
  for (const [name, child] of Object.entries((schema.patternProperties ?? {}) as Record<string, Node>))
    yield* walk(child, `${path}[${name}]`)
  for (const child of (schema.anyOf ?? []) as Node[]) yield* walk(child, path)
  if (schema.items !== undefined) yield* walk(schema.items as Node, `${path}[]`)
}

const schemas: Record<string, Node> = {
  native: nativeSchema as unknown as Node,
  compatible: compatibleSchema as unknown as Node,
  estimate: estimateRequestSchema as unknown as Node,
}
const all = Object.entries(schemas).flatMap(([name, schema]) => [...walk(schema, name)])

describe('schemas of untrusted bodies', () => {
  test('bound each string, or declare the body limit as its bound [B18]', () => {
    const unbounded = all.filter(
      ([, node]) => node[Kind] === 'String' && node.maxLength === undefined && node.boundedBy !== 'body',
    )
    expect(unbounded.map(([path]) => path)).toEqual([])
  })

  test('use the body limit as bound only for chat text and images [B18]', () => {
    const byBody = new Set(
      all.filter(([, node]) => node.boundedBy === 'body').map(([path]) => path.split('.').at(-1)?.replace('[]', '')),
    )
    expect([...byBody].sort()).toEqual([
      'arguments',
      'content',
      'description',
      'file_data',
      'messages',
      'prompt',
      'reasoning',
      'reasoning_content',
      'refusal',
      'text',
      'thought_signature',
      'url',
    ])
  })

  test('contain no nested repetition in a pattern and no string `format` [B18]', () => {
    expect(all.filter(([, node]) => node.format !== undefined)).toEqual([])
    const patterns = all.flatMap(([, node]) => (typeof node.pattern === 'string' ? [node.pattern] : []))
    for (const pattern of new Set(patterns)) {
      const started = cpuMs()
      for (const attack of ['a', 'http:', '-', ' ', 'data:,'])
        new RegExp(pattern).test(`${attack.repeat(200_000)}\u0000`)
      // Takes a few milliseconds; a quadratic pattern takes minutes.
      expect([pattern, cpuMs() - started < 5_000]).toEqual([pattern, true])
    }
  })

  test('declare unknown fields per object, allowed only in JSON schemas for native ones [B19]', () => {
    const objects = all.filter(([, node]) => node[Kind] === 'Object')
    expect(objects.filter(([, node]) => typeof node.additionalProperties !== 'boolean').map(([path]) => path)).toEqual(
      [],
    )
    const taking = (name: string) =>
      objects
        .filter(([path, node]) => path.startsWith(name) && node.additionalProperties === true)
        .map(([path]) => path)
    expect(taking('native')).toEqual([
      'native.tools[].function.parameters',
      'native.response_format.json_schema.schema',
    ])
    expect(taking('estimate')).toEqual([])
    expect(taking('compatible')).toContain('compatible')
  })

  test('bound each array and number', () => {
    // The body limit bounds a message's parts together with its text.
    const arrays = all.filter(
      ([path, node]) => node[Kind] === 'Array' && node.maxItems === undefined && !path.endsWith('.content'),
    )
    expect(arrays.map(([path]) => path)).toEqual([])
    const numbers = all.filter(
      ([, node]) =>
        (node[Kind] === 'Number' || node[Kind] === 'Integer') &&
        (node.minimum === undefined || node.maximum === undefined),
    )
    expect(numbers.map(([path]) => path)).toEqual([])
  })

  test('convert no string to a number and accept no infinite one [E6]', () => {
    const kinds = new Set(all.map(([, node]) => node[Kind]))
    expect([...kinds].sort()).toEqual([
      'Array',
      'Boolean',
      'Integer',
      'Literal',
      'Null',
      'Number',
      'Object',
      'Record',
      'String',
      'Union',
    ])
  })
})
