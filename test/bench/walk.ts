/**
 * `bun run bench:walk`: functions that one request calls on the main thread, and their files. Every function of `src`
 * counts its calls, so that times mean nothing here. Prints the mean of 20 requests after 100.
 */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, relative, resolve } from 'node:path'
import ts from 'typescript-5-4'
import { createPaths } from './paths.ts'

const root = resolve(import.meta.dir, '../..')
const warming = 100
const counted = 20

const counts = { calls: new Map<string, number>(), changes: 0, last: '', isOn: false }
Object.assign(globalThis, {
  countCall(place: string) {
    if (!counts.isOn) return
    counts.calls.set(place, (counts.calls.get(place) ?? 0) + 1)
    const file = place.slice(0, place.indexOf(':'))
    if (file !== counts.last) counts.changes++
    counts.last = file
  },
})

/** Makes each function of a file report its call first. */
const reportCalls =
  (path: string): ts.TransformerFactory<ts.SourceFile> =>
  context => {
    const { factory } = context
    const report = (at: ts.Node) =>
      factory.createExpressionStatement(
        factory.createCallExpression(factory.createIdentifier('globalThis.countCall'), undefined, [
          factory.createStringLiteral(`${path}:${at.pos}`),
        ]),
      )
    const visit = (node: ts.Node): ts.Node => {
      const inner = ts.visitEachChild(node, visit, context)
      if (ts.isArrowFunction(inner)) {
        const body = ts.isBlock(inner.body) ? inner.body.statements : [factory.createReturnStatement(inner.body)]
        const { modifiers, typeParameters, parameters, type, equalsGreaterThanToken } = inner
        const block = factory.createBlock([report(node), ...body], true)
        return factory.updateArrowFunction(
          inner,
          modifiers,
          typeParameters,
          parameters,
          type,
          equalsGreaterThanToken,
          block,
        )
      }
      if (!ts.isBlock(inner) || !ts.isFunctionLike(node.parent) || ts.isArrowFunction(node.parent)) return inner
      // A constructor of a subclass calls `super` first.
      const first = ts.isConstructorDeclaration(node.parent) ? inner.statements.slice(0, 1) : []
      return factory.updateBlock(inner, [...first, report(node), ...inner.statements.slice(first.length)])
    }
    return file => ts.visitEachChild(file, visit, context)
  }

Bun.plugin({
  name: 'walk',
  setup(build) {
    build.onLoad({ filter: /\/src\/.*\.ts$/ }, ({ path }) => ({
      loader: 'js',
      contents: ts.transpileModule(readFileSync(path, 'utf8'), {
        compilerOptions: { target: ts.ScriptTarget.ESNext, module: ts.ModuleKind.ESNext, verbatimModuleSyntax: true },
        transformers: { before: [reportCalls(relative(root, path))] },
      }).outputText,
    }))
  },
})

const folder = mkdtempSync(join(tmpdir(), 'gateway-walk-'))
const paths = createPaths(folder)
const upstream = await paths.upstream(root)
Object.assign(process.env, {
  GATEWAY_DATA_DIR: folder,
  OPENAI_API_KEY: 'walk',
  OPENAI_BASE_URL: `http://127.0.0.1:${upstream.port}/v1`,
  LOG_LEVEL: 'error',
})
const { port, key } = await import('./gateway.ts')

const topics = ['clocks', 'bread', 'planets', 'violins', 'leaves', 'bicycles', 'rain', 'harbors', 'glass', 'maps']
let sent = 0
/** Some 200 characters, different in each request if `isNew`. */
function writePrompt(isNew: boolean): string {
  const n = isNew ? sent++ : 0
  const [first, second] = [topics[n % 10], topics[Math.floor(n / 10) % 10]]
  return `Compare the history of ${first} with that of ${second} in ${20 + n} words for a reader who knows neither. Name one person, one place and one year for each, and end with a sentence on which of both changed daily life more.`
}

async function send(model: string, isNew: boolean, stream: boolean): Promise<void> {
  const response = await fetch(`http://127.0.0.1:${port}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model, stream, messages: [{ role: 'user', content: writePrompt(isNew) }] }),
  })
  if (!response.ok) throw new Error(`${response.status} ${await response.text()}`)
  await response.text()
}

for (const [name, model, isNew, stream] of [
  ['automatic model, new prompt, JSON', 'gateway-ai', true, false],
  ['named model, known prompt, JSON', 'openai/gpt-4.1', false, false],
  ['automatic model, new prompt, stream of 20 chunks', 'gateway-ai', true, true],
] as const) {
  for (let n = 0; n < warming; n++) await send(model, isNew, stream)
  Object.assign(counts, { calls: new Map(), changes: 0, isOn: true })
  for (let n = 0; n < counted; n++) await send(model, isNew, stream)
  counts.isOn = false
  const calls = [...counts.calls.values()].reduce((sum, count) => sum + count, 0)
  const byFile = new Map<string, number>()
  for (const [place, count] of counts.calls) {
    const file = place.slice(0, place.indexOf(':'))
    byFile.set(file, (byFile.get(file) ?? 0) + count)
  }
  const perRequest = (count: number) => Math.round(count / counted)
  const steady = [...byFile].filter(([, count]) => count >= counted)
  process.stdout.write(
    `${name}: ${perRequest(calls)} calls, ${steady.length} files, ${perRequest(counts.changes)} changes of file\n`,
  )
  if (process.argv.includes('--files'))
    for (const [file, count] of steady.toSorted((a, b) => b[1] - a[1]))
      process.stdout.write(`  ${String(perRequest(count)).padStart(6)}  ${file}\n`)
}

await paths.stop()
rmSync(folder, { recursive: true, force: true })
process.exit(0)
