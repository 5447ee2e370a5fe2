/** Facts of Elysia that our code stands on, and what every schema must say. */
import { describe, expect, test } from 'bun:test'
import { Kind, type TSchema, Type } from '@sinclair/typebox'
import { Elysia } from 'elysia'
import { compatibleSchema } from '../../src/dialects/chat-completions/request.ts'
import { nativeSchema } from '../../src/dialects/native/request.ts'
import { estimateRequestSchema } from '../../src/routes/estimate/routes.ts'
import { openRaw, rawText } from '../harness/raw.ts'

const post = (path: string, body: string) =>
  new Request(`http://localhost${path}`, { method: 'POST', body, headers: { 'content-type': 'application/json' } })

describe('E1: with a schema on the route', () => {
  const schema = Type.Object({ name: Type.String({ maxLength: 5 }) }, { additionalProperties: false })

  test('a macro’s resolve comes after validation, a scoped derive before it, and broken JSON before both', async () => {
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

  test('`parse: none` leaves the body unread: nothing of it is looked at before the handler', async () => {
    const app = new Elysia({ normalize: false }).post('/', ({ request, body }) => `${body} ${request.bodyUsed}`, {
      parse: 'none',
    })
    expect(await (await app.handle(post('/', '{'))).text()).toBe('undefined false')
  })

  test('B17: its own error body repeats what was sent, so ours is made in `onError`', async () => {
    const answer = await new Elysia()
      .post('/', () => 'in', { body: schema })
      .handle(post('/', '{"name":"canary-is-long"}'))
    expect([answer.status, (await answer.text()).includes('canary-is-long')]).toEqual([422, true])
  })

  test('B19: unknown fields are dropped in silence unless `normalize` is off', async () => {
    const send = async (normalize: boolean) =>
      (
        await new Elysia({ normalize })
          .post('/', ({ body }) => Object.keys(body).join(), { body: schema })
          .handle(post('/', '{"name":"a","extra":1}'))
      ).status
    expect([await send(true), await send(false)]).toEqual([200, 422])
  })
})

test('B20: the path is searched for in the whole address, so a short host moves it', async () => {
  const app = new Elysia().get('/admin', () => 'in')
  expect((await app.handle(new Request('http://x/ab/admin'))).status).toBe(200)
  expect((await app.handle(new Request('http://localhost/ab/admin'))).status).toBe(404)
})

describe('E2, E3: a generator that a handler returns', () => {
  test('does not end when its caller leaves while it waits; a Response of our own is told', async () => {
    let generatorEnded = false
    let cancelled = false
    const app = new Elysia()
      .get('/generator', async function* () {
        try {
          yield 'first'
          await new Promise(() => undefined)
        } finally {
          generatorEnded = true
        }
      })
      .get('/response', () => {
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
      const deadline = performance.now() + 1_000
      while (!received().includes('\r\n\r\n') && performance.now() < deadline) await Bun.sleep(5)
      socket.destroy()
    }
    await Bun.sleep(200)
    expect([generatorEnded, cancelled]).toEqual([false, true])
    await app.server?.stop(true)
  })

  test('has the `data:` of its frames doubled', async () => {
    const app = new Elysia().get('/', async function* ({ set }) {
      set.headers['content-type'] = 'text/event-stream'
      yield 'data: one\n\n'
      yield 'data: two\n\n'
    })
    expect(await (await app.handle(new Request('http://localhost/'))).text()).toContain('data: data: ')
  })
})

type Node = TSchema & { readonly [key: string]: unknown }

/** Every schema below this one, with its path. */
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

describe('every schema that foreign bodies meet', () => {
  test('B18: bounds each string, or says that the cap on the body is its bound', () => {
    const unbounded = all.filter(
      ([, node]) => node[Kind] === 'String' && node.maxLength === undefined && node.boundedBy !== 'body',
    )
    expect(unbounded.map(([path]) => path)).toEqual([])
  })

  test('B18: only chat text and images are bounded by the body', () => {
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

  test('B18: no pattern holds a nested repetition, no string a `format`', () => {
    expect(all.filter(([, node]) => node.format !== undefined)).toEqual([])
    const patterns = all.flatMap(([, node]) => (typeof node.pattern === 'string' ? [node.pattern] : []))
    for (const pattern of new Set(patterns)) {
      const started = performance.now()
      for (const attack of ['a', 'http:', '-', ' ', 'data:,'])
        new RegExp(pattern).test(`${attack.repeat(200_000)}\u0000`)
      expect([pattern, performance.now() - started < 100]).toEqual([pattern, true])
    }
  })

  test('B19: each object says whether it takes unknown fields; ours never do, but JSON schemas', () => {
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

  test('each array and each number is bounded', () => {
    // A message's parts and its text are bounded by the body together.
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

  test('E6: nothing turns a string into a number, nor lets an infinite one in', () => {
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
