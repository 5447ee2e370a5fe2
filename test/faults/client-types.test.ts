/** The client's types in its users' compilers: from the packed library, with library checks on. */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { cpSync, mkdirSync, readdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { temporaryFolder } from '../database/support.ts'

setDefaultTimeout(240_000)

const root = resolve(import.meta.dir, '../..')
const folder = temporaryFolder()
const consumer = join(folder.path, 'consumer')
const compilers = { 'TypeScript 5.4': 'typescript-5-4', 'this TypeScript': 'typescript' } as const

async function run(words: readonly string[], cwd = root): Promise<{ code: number; said: string }> {
  const child = Bun.spawn([...words], { cwd, stdin: 'ignore', stdout: 'pipe', stderr: 'pipe' })
  const [code, out, errors] = await Promise.all([child.exited, child.stdout.text(), child.stderr.text()])
  return { code, said: out + errors }
}
const compiler = (name: string) => [process.execPath, join(root, 'node_modules', name, 'bin/tsc')]

/** Does the same as `client:pack` in a separate folder. */
beforeAll(async () => {
  const [built, packages] = [join(folder.path, 'client'), join(consumer, 'node_modules')]
  const library = join(packages, 'gateway-ai')
  mkdirSync(library, { recursive: true })
  expect(await run([...compiler('typescript'), '-p', 'src/client', '--outDir', built])).toEqual({ code: 0, said: '' })
  for (const file of ['src/client/package.json', 'src/client/README.md', 'LICENSE'])
    cpSync(join(root, file), join(built, file.split('/').at(-1) ?? ''))
  expect(
    (await run([process.execPath, 'pm', 'pack', '--cwd', built, '--destination', folder.path, '--quiet'])).code,
  ).toBe(0)
  const tarball = readdirSync(folder.path).find(name => name.endsWith('.tgz')) ?? ''
  expect((await run(['tar', 'xzf', join(folder.path, tarball), '-C', library, '--strip-components', '1'])).code).toBe(0)
  for (const name of ['@types', 'undici-types']) symlinkSync(join(root, 'node_modules', name), join(packages, name))
  writeFileSync(join(consumer, 'package.json'), '{ "type": "module" }')
  writeFileSync(join(consumer, 'use.ts'), use)
  writeFileSync(join(consumer, 'misuse.ts'), "import { Gateway } from 'gateway-ai/client'\nnew Gateway().chat(1)\n")
})
afterAll(folder.remove)

const use = `
import { type ChatReply, type Estimate, Gateway, GatewayError, type Learning, type Model } from 'gateway-ai/client'
export async function use(signal: AbortSignal): Promise<readonly unknown[]> {
  const gateway = new Gateway({ apiKey: 'key', baseUrl: 'http://127.0.0.1:3000', fetch: (url, init) => fetch(url, init) })
  const answer: ChatReply = await gateway.chat('hello', { model: 'gateway-ai', signal })
  let text: string = answer.output
  for await (const event of gateway.stream([{ role: 'user', content: 'hello' }])) if (event.type === 'delta') text += event.content
  const models: readonly Model[] = await gateway.models()
  const estimate: Estimate = await gateway.estimate('hello')
  const learning: Learning = await gateway.insights.learning()
  try {
    await gateway.route('hello')
  } catch (error) {
    if (error instanceof GatewayError) text += error.message
  }
  return [text, models, estimate, learning]
}
`

const settings = {
  strict: true,
  exactOptionalPropertyTypes: true,
  noUncheckedIndexedAccess: true,
  noEmit: true,
  skipLibCheck: false,
  // The compiler's own declarations take most of the time, and nothing of ours is in them.
  skipDefaultLibCheck: true,
  target: 'es2022',
}
const libraries = {
  DOM: { lib: ['ES2022', 'DOM'], types: [] },
  'the types of Node': { lib: ['ES2022'], types: ['node'] },
}
const modules = {
  nodenext: { module: 'nodenext', moduleResolution: 'nodenext' },
  bundler: { module: 'esnext', moduleResolution: 'bundler' },
  node: { module: 'esnext', moduleResolution: 'node' },
}

const settled = [
  ['DOM', 'bundler'],
  ['DOM', 'node'],
  ['the types of Node', 'nodenext'],
] as const

/** Its module resolutions are those of the older compiler, without `node`. */
const newest = [['the types of Node', 'nodenext']] as const

async function compile(name: string, options: object) {
  writeFileSync(
    join(consumer, 'tsconfig.json'),
    JSON.stringify({ compilerOptions: { ...settings, ...options }, files: ['use.ts', 'misuse.ts'] }),
  )
  return run([...compiler(name), '-p', consumer], consumer)
}

describe('packed client', () => {
  for (const [title, name] of Object.entries(compilers))
    test(`compiles in ${title} when libraries are checked too, with and without the DOM`, async () => {
      for (const [platform, way] of name === 'typescript' ? newest : settled) {
        const { said } = await compile(name, { ...libraries[platform], ...modules[way] })
        // Node's own declarations require compilers of their time.
        const ours = said
          .split('\n')
          .filter(line => line !== '' && !line.includes('@types/node/') && !line.startsWith(' '))
        // The one misuse is an error, and nothing else is.
        expect([platform, way, ours]).toEqual([
          platform,
          way,
          [expect.stringMatching(/^misuse\.ts.*not assignable to parameter of type 'Prompt'/)],
        ])
      }
    })
})
