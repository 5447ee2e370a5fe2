/** Rules of the source tree (docs/architecture.md). Each failure says what to do instead. */
import { describe, expect, test } from 'bun:test'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'

const root = resolve(import.meta.dir, '..')

type Source = {
  readonly path: string
  readonly text: string
  readonly imports: readonly string[]
  /** Without those on demand. */
  readonly staticImports: readonly string[]
}

function filesUnder(folder: string): string[] {
  return readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
    .filter(name => /\.tsx?$/.test(name))
    .map(name => join(folder, name))
    .sort()
}

const transpilers = { ts: new Bun.Transpiler({ loader: 'ts' }), tsx: new Bun.Transpiler({ loader: 'tsx' }) }

function read(path: string): Source {
  const text = readFileSync(join(root, path), 'utf8').replace(/^#!.*/, '')
  const scanned = transpilers[path.endsWith('x') ? 'tsx' : 'ts'].scanImports(text).map(({ path: target, kind }) => ({
    target: target.startsWith('.') ? relative(root, resolve(root, dirname(path), target)) : target,
    kind,
  }))
  const imports = scanned.map(({ target }) => target)
  const staticImports = scanned.flatMap(({ target, kind }) => (kind === 'import-statement' ? [target] : []))
  // A worker is started by URL, not imported, but is reachable too.
  for (const [, target] of text.matchAll(/new URL\('(\.[^']+\.ts)', import\.meta\.url\)/g))
    if (target !== undefined) imports.push(relative(root, resolve(root, dirname(path), target)))
  return { path, text: withoutComments(text), imports, staticImports }
}

/** Type-only imports do not exist at run time, but the rules apply to them. */
function typeImports(path: string): string[] {
  const text = readFileSync(join(root, path), 'utf8')
  return [...text.matchAll(/from '(\.[^']+\.tsx?)'/g)].flatMap(([, target]) =>
    target === undefined ? [] : [relative(root, resolve(root, dirname(path), target))],
  )
}

function withoutComments(text: string): string {
  return text.replace(/\/\*[\s\S]*?\*\//g, '').replace(/(^|\s)\/\/.*$/gm, '$1')
}

const sources = filesUnder('src').map(read)
const byPath = new Map(sources.map(source => [source.path, source]))
const getLayer = (path: string) => path.split('/')[1] ?? ''

/** Layers of `src/` that a layer may import at run time, beside its own folder. */
const mayImport: Readonly<Record<string, readonly string[]>> = {
  core: [],
  text: ['core'],
  models: ['core'],
  providers: ['core', 'models'],
  credentials: ['core'],
  simulator: ['core', 'text/tokens'],
  web: ['core', 'text'],
  database: ['core'],
  ledger: ['core', 'database', 'learning'],
  learning: ['core', 'database', 'models', 'text'],
  limits: ['core'],
  observability: ['core', 'http'],
  mail: ['core'],
  request: [
    'core',
    'text',
    'models',
    'web',
    'learning',
    ...['received-answer', 'sse', 'tool-names'].map(name => `providers/${name}.ts`),
  ],
  http: ['core', 'models'],
  dialects: ['core', 'http', 'models', 'request', 'text', 'web'],
  // A feature is one folder: its routes, schemas, queries and workers.
  console: ['core', 'http', 'database', 'models', 'learning', 'ledger', 'mail', 'request', 'web'],
  client: [],
  dashboard: ['core'],
  config: ['core', 'http/body-budget.ts', 'models', 'text/moderation/layers/settings.ts'],
}

/** The folder or file in `src`. */
const topFolder = (path: string) => getLayer(path).replace(/\.tsx?$/, '')

/** The two folders side by side that hold the files; null where one file's folder holds the other's. */
function partingFolders(path: string, target: string): readonly [string, string] | null {
  const [own, other] = [path.split('/'), target.split('/')]
  let at = 0
  while (own[at] === other[at] && at < own.length) at++
  if (at === 0) return null
  if (at === 1 && topFolder(path) !== topFolder(target)) return [`src/${topFolder(path)}`, `src/${topFolder(target)}`]
  if (at >= own.length - 1 || at >= other.length - 1) return null
  return [own.slice(0, at + 1).join('/'), other.slice(0, at + 1).join('/')]
}

describe('layers', () => {
  test('import only lower layers', () => {
    const wrong: string[] = []
    for (const { path, imports } of sources) {
      const layer = getLayer(path)
      const allowed = mayImport[layer]
      if (allowed === undefined) continue
      for (const target of imports) {
        if (!target.startsWith('src/')) continue
        if (getLayer(target) !== layer && !allowed.some(prefix => target.startsWith(`src/${prefix}`)))
          wrong.push(`${path} imports ${target}: take it as a value in deps, or move the shared part to core`)
      }
    }
    expect(wrong).toEqual([])
  })

  test('keep core and text pure: only TypeBox, the tokenizer, the address parser, RE2 and pure functions of node:url', () => {
    const wrong = sources
      .filter(
        ({ path }) =>
          getLayer(path) === 'core' || (getLayer(path) === 'text' && !path.startsWith('src/text/moderation/layers/')),
      )
      .flatMap(({ path, imports }) =>
        imports
          .filter(
            target =>
              !target.startsWith('src/') &&
              !/^(@sinclair\/typebox|gpt-tokenizer|ipaddr\.js|node:url|re2js)(\/|$)/.test(target),
          )
          .map(target => `${path} imports ${target}: pass what it does in as a value`),
      )
    expect(wrong).toEqual([])
  })

  test('the service imports nothing of the other programs, except on demand', () => {
    const program = /^src\/(dashboard|simulator|training|client)\//
    const wrong = sources
      .filter(({ path }) => !program.test(path))
      .flatMap(({ path, staticImports }) =>
        staticImports.filter(target => program.test(target)).map(target => `${path} imports ${target}: import() it`),
      )
    expect(wrong).toEqual([])
  })

  const getImports = (path: string) =>
    new Set([...(byPath.get(path)?.imports ?? []), ...(byPath.has(path) ? typeImports(path) : [])])

  test('contain no import cycle, including types', () => {
    const done = new Set<string>()
    const walk = (path: string, trail: readonly string[]): string | null => {
      if (trail.includes(path)) return [...trail.slice(trail.indexOf(path)), path].join(' → ')
      if (done.has(path)) return null
      for (const target of getImports(path)) {
        const cycle = walk(target, [...trail, path])
        if (cycle !== null) return cycle
      }
      done.add(path)
      return null
    }
    expect(sources.map(({ path }) => walk(path, [])).filter(cycle => cycle !== null)).toEqual([])
  })

  test('no two folders import each other, types included', () => {
    const edges = new Map<string, string>()
    for (const { path } of sources)
      for (const target of getImports(path)) {
        const parting = partingFolders(path, target)
        if (parting !== null) edges.set(parting.join(' → '), `${path} imports ${target}`)
      }
    const mutual = [...edges].filter(([edge]) => {
      const [from, to] = edge.split(' → ')
      return edges.has(`${to} → ${from}`)
    })
    expect(mutual.map(([, example]) => `${example}: move the shared part below both`)).toEqual([])
  })

  test('the folders in src form no cycle, types included', () => {
    const edges = new Map<string, Set<string>>()
    for (const { path } of sources)
      for (const target of getImports(path)) {
        const [from, to] = [topFolder(path), topFolder(target)]
        if (!target.startsWith('src/') || from === to) continue
        edges.set(from, (edges.get(from) ?? new Set()).add(to))
      }
    const reaches = (from: string, wanted: string, seen = new Set<string>()): boolean =>
      [...(edges.get(from) ?? [])].some(to => {
        if (to === wanted) return true
        if (seen.has(to)) return false
        seen.add(to)
        return reaches(to, wanted, seen)
      })
    expect([...edges.keys()].filter(folder => reaches(folder, folder))).toEqual([])
  })

  test('contain only files reachable from an entry or a test', () => {
    const reached = new Set<string>()
    const walk = (path: string) => {
      if (reached.has(path) || !/\.tsx?$/.test(path) || !existsSync(join(root, path))) return
      reached.add(path)
      for (const target of [...read(path).imports, ...typeImports(path)]) walk(target)
    }
    const entries = [
      'src/main.ts',
      'src/cli.ts',
      'src/server/install.ts',
      'src/client/gateway.ts',
      'src/dashboard/main.tsx',
      'src/training/train.ts',
      'src/training/vocabulary.ts',
      'test/client/wire.ts',
    ]
    for (const entry of entries) walk(entry)
    expect(sources.map(({ path }) => path).filter(path => !reached.has(path))).toEqual([])
  })
})

describe('source rules', () => {
  const found = (pattern: RegExp, where: (path: string) => boolean) =>
    sources.filter(({ path }) => where(path)).flatMap(({ path, text }) => (pattern.test(text) ? [path] : []))

  test('read the environment only in config.ts', () => {
    // The second writes programs for others, which read their key there.
    const may = ['src/config/config.ts', 'src/dashboard/state/request-code.ts']
    expect(found(/\b(process|Bun)\.env\b|import\.meta\.env/, path => !may.includes(path))).toEqual([])
  })

  test('take time, randomness and the network as values in core, text, request, http, dialects, console and providers', () => {
    // Background jobs have one timer, and nothing else in these folders does.
    const timer = 'src/core/jobs/repeating.ts'
    // A query and a service that is called have their own clock.
    const outer = /^src\/(console\/\w+\/(store\.ts|stores\/|payments\/)|text\/moderation\/layers\/)/
    const inner = (path: string) =>
      path !== timer &&
      !outer.test(path) &&
      ['core', 'text', 'request', 'http', 'dialects', 'console', 'providers'].includes(getLayer(path))
    const clock =
      /\bDate\.now\(|\bnew Date\(\)|\bperformance\.now\(|\bMath\.random\(|(?<![.\w])fetch\(|\bsetTimeout\(|\bsetInterval\(/
    expect(found(clock, inner)).toEqual([])
  })

  test('repeat work only through jobs/repeating.ts, so that at rest nothing runs faster than it must', () => {
    // The first two run only while a call waits, the third while an operator looks.
    const may = ['src/database/patience.ts', 'src/web/page/parser-pool.ts', 'src/commands/progress.ts']
    const own = (path: string) => /^src\/(dashboard\/|core\/jobs\/repeating\.ts)/.test(path) || may.includes(path)
    expect(found(/\bsetInterval\(/, path => !own(path))).toEqual([])
  })

  test('open sockets only in web, the database drivers and the simulator', () => {
    const network = /from '(node:)?(net|tls|dns|http|https|dgram)(\/promises)?'|\bBun\.(connect|listen|udpSocket)\b/
    const may = ['src/config/addresses.ts', 'src/simulator/', 'src/database/embedded', 'src/web/']
    expect(found(network, path => !may.some(prefix => path.startsWith(prefix)))).toEqual([])
  })

  test('run no generated code, and spawn processes only for the command line', () => {
    // The supervisor starts itself again with its own arguments; `bun run start` installs the locked dependencies.
    const may = ['src/cli.ts', 'src/server/workers.ts', 'src/server/install.ts']
    expect(found(/\beval\(|new Function\(|node:vm|\bBun\.spawn|child_process/, path => !may.includes(path))).toEqual([])
  })

  test('use no any, non-null assertion or silenced compiler', () => {
    expect(found(/(:|\bas|<)\s*any\b|@ts-(ignore|expect-error|nocheck)|[\w)\]]!(\.|;|,|\)|\[)/, () => true)).toEqual([])
  })

  test('only the root takes all dependencies; every function declares what it needs', () => {
    const root = ['src/compose/deps.ts', 'src/app.ts']
    expect(found(/\bimport [^']*\bDeps\b[^']*'[^']*compose\/deps\.ts'/, path => !root.includes(path))).toEqual([])
    expect(found(/\bPick<Deps\b/, () => true)).toEqual([])
  })

  test('tests of a request build what a step needs, without casts', () => {
    const casts = /\bas (unknown as|never|any)\b|\bas (Deps|Candidate|Provider|Route|Format)\b/
    const wrong = filesUnder('test/request').filter(path => casts.test(read(path).text))
    expect(wrong).toEqual([])
  })

  test('build no SQL from text', () => {
    // Made of numbers: a lock timeout, a month's partition, and a sum for each latency bucket.
    const may = ['database/database', 'database/transact', 'ledger/usage-lines', 'ledger/shipper'].map(
      name => `src/${name}.ts`,
    )
    expect(found(/\bsql\.raw\(|\.unsafe\(/, path => !may.includes(path))).toEqual([])
  })

  test('skip no test without its need and run none exclusively', () => {
    // `needs.ts` declares skipped tests, with their need.
    const may = ['test/architecture.test.ts', 'test/harness/needs.ts']
    const marks = /\b(test|it|describe)\.(only|skip|todo|if|skipIf|todoIf)\(/
    expect(filesUnder('test').filter(path => !may.includes(path) && marks.test(read(path).text))).toEqual([])
  })

  test('assert no elapsed time', () => {
    const took =
      /expect\((Math\.\w+\()?performance\.now\(\)[^)]*\)\.toBeLess|expect\(\w*(took|elapsed|duration)\w*\)\.toBeLess/
    const wrong = filesUnder('test').filter(path => path !== 'test/architecture.test.ts' && took.test(read(path).text))
    expect(wrong).toEqual([])
  })

  test('assert no memory of a process, which neighbors and the collector decide: print it', () => {
    const asserted = /expect\(\W*(grown|peaks?|peakBytes|memory|process|rss|heap)\b/
    const wrong = filesUnder('test').filter(path => {
      const { text } = read(path)
      return path !== 'test/architecture.test.ts' && /memoryUsage|VmHWM/.test(text) && asserted.test(text)
    })
    expect(wrong).toEqual([])
  })

  test('open stores with the deadlines of the harness, except tests of the usual ones', () => {
    const usual = /openDatabase\((?:[^(),]|\(\))+\)|openRedis\(\{ urls: [^{},]+ \}\)/
    const may = [
      'test/architecture.test.ts',
      'test/database/database.contract.ts',
      'test/database/postgres.test.ts',
      'test/faults/postgres-refuses.test.ts',
    ]
    const wrong = filesUnder('test')
      .filter(path => !path.startsWith('test/bench/') && ![...may, 'test/database/redis.test.ts'].includes(path))
      .filter(path => usual.test(read(path).text))
    expect(wrong).toEqual([])
  })

  test('sleep for no effect: await the event or the work, move the clock, or use eventually', () => {
    // A sleep of 0 ms waits for one turn of the event loop. This number may only become smaller.
    const most = 53
    const rest = filesUnder('test').filter(
      path => !/^test\/(bench|harness)\/|^test\/(run|architecture\.test)\.ts$/.test(path),
    )
    const sleeps = rest.flatMap(path => read(path).text.match(/Bun\.sleep\((?!0\))/g) ?? [])
    expect(sleeps.length).toBeLessThanOrEqual(most)
  })

  test('declare no deadline outside core/request/deadlines.ts, where the configuration and tests change it', () => {
    // Left: deadlines that a pool or client scales, of background work, and of other programs. Only removals are allowed.
    const left = new Set([
      'src/http/body.ts',
      'src/compose/deps.ts',
      'src/text/tokens/tokenizer.ts',
      'src/credentials/credential-cache.ts',
      'src/database/channel.ts',
      'src/database/database.ts',
      'src/database/embedded.ts',
      'src/learning/learning.ts',
      'src/database/redis-sentinel.ts',
      'src/database/redis.ts',
      'src/database/repositories/audit.ts',
      'src/console/billing/stores/billing.ts',
      'src/console/keys/stores/keys.ts',
      'src/http/sse-response.ts',
      'src/ledger/find-request.ts',
      'src/ledger/ledger.ts',
      'src/ledger/reconcile.ts',
      'src/ledger/reconcile/sources.ts',
      'src/ledger/shipper.ts',
      'src/ledger/usage-totals.ts',
      'src/limits/usage-records.ts',
      'src/mail/queue.ts',
      'src/text/moderation/layers/blocklist.ts',
      'src/text/moderation/layers/settings.ts',
      'src/observability/exporter.ts',
      'src/server/serve.ts',
      'src/console/webhooks/worker.ts',
    ])
    const constant = /^(export )?const \w*([dD]eadline|[tT]imeout|patience|reach|lookup)\w*(Ms|Seconds) *= *[0-9]/m
    const wrong = sources
      .filter(({ path }) => !/^src\/(dashboard|simulator|client|commands)\//.test(path) && !left.has(path))
      .filter(({ text }) => constant.test(text))
    expect(wrong.map(({ path }) => path)).toEqual([])
  })
})

describe('budgets', () => {
  const getLines = (path: string) => readFileSync(join(root, path), 'utf8').split('\n').length - 1
  const sizes = new Map(sources.map(({ path }) => [path, getLines(path)]))
  const linesIn = (isCounted: (path: string) => boolean) =>
    [...sizes].reduce((sum, [path, lines]) => (isCounted(path) ? sum + lines : sum), 0)
  const linesUnder = (folder: string) => linesIn(path => path.startsWith(`src/${folder}/`))
  const programs = /^src\/(dashboard|simulator|training|client)\//
  const filesPerFolder = [...Map.groupBy(sizes.keys(), dirname).values()].map(({ length }) => length)
  const getCount = (folder: string) => readdirSync(join(root, folder)).filter(name => name.endsWith('.md')).length

  // What the tree has today, rounded up: a number may only become smaller. A larger one needs a decision record that
  // names what was removed for it.
  const table: Readonly<Record<string, readonly [figure: number, most: number]>> = {
    'lines of the service': [linesIn(path => !programs.test(path)), 89_932],
    'lines of src/dashboard': [linesUnder('dashboard'), 12_319],
    'lines of src/simulator': [linesUnder('simulator'), 3_592],
    'lines of src/training': [linesUnder('training'), 1_600],
    'lines of src/limits': [linesUnder('limits'), 3_038],
    'lines of src/ledger': [linesUnder('ledger'), 2_906],
    'lines of src/request': [linesUnder('request'), 8_175],
    'lines of src/text': [linesUnder('text'), 10_263],
    'lines of tests': [filesUnder('test').reduce((sum, path) => sum + getLines(path), 0), 103_728],
    'files in src': [sizes.size, 670],
    'files of at most 25 lines': [[...sizes.values()].filter(lines => lines <= 25).length, 16],
    'files of more than 300 lines': [[...sizes.values()].filter(lines => lines > 300).length, 47],
    'files in one folder': [Math.max(...filesPerFolder), 30],
    'decision records': [getCount('docs/decisions') - 1, 23],
    'pages of documentation': [getCount('docs'), 16],
  }
  for (const [what, [figure, most]] of Object.entries(table))
    test(`keep to the budget: ${what}`, () => expect(figure).toBeLessThanOrEqual(most))
})
