/**
 * Documentation: links, commands, variables, paths and examples must match the repository, because outdated ones go
 * unnoticed.
 */
import { afterAll, describe, expect, test } from 'bun:test'
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, dirname, join, relative, resolve } from 'node:path'
import packageJson from '../package.json'
import { ConfigError, type Environment, readConfig } from '../src/config/config.ts'
import { presets } from '../src/config/presets.ts'
import { publishedEmbeddingModels } from '../src/core/models/embedding-models.ts'
import { buildCatalog } from '../src/core/models/models.ts'
import { errorTable } from '../src/core/validation/errors.ts'
import { catalog } from '../src/models/catalog.ts'
import { programPath } from './harness/bundle.ts'
import { serviceAccountFile } from './harness/clouds.ts'

const root = resolve(import.meta.dir, '..')

function pathsUnder(folder: string, ending: RegExp): string[] {
  return readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
    .filter(name => ending.test(name))
    .map(name => join(folder, name))
    .sort()
}

const text = (path: string) => readFileSync(join(root, path), 'utf8')
const top = readdirSync(root).filter(name => name.endsWith('.md'))
/** Decisions record the past, including their commands and paths. */
const decisions = pathsUnder('docs/decisions', /\.md$/)
const guides = [
  ...top,
  ...pathsUnder('examples', /\.md$/),
  ...pathsUnder('docs', /\.md$/).filter(path => !decisions.includes(path)),
]
const pages = [...guides, ...decisions]

/** Returns a page without its code blocks, which contain no links or headings. */
const prose = (path: string) => text(path).replace(/^```[\s\S]*?^```$/gm, '')

/**
 * Returns anchors as GitHub creates them: lower case, no punctuation, hyphens for spaces, a number for repeated names.
 */
function getAnchors(path: string): ReadonlySet<string> {
  const seen = new Map<string, number>()
  const anchors = new Set<string>()
  for (const [, title = ''] of prose(path).matchAll(/^#{1,6} (.+)$/gm)) {
    const slug = title
      .replace(/\[([^\]]*)\]\([^)]*\)/g, '$1')
      .toLowerCase()
      .replace(/[^\p{L}\p{N}\s_-]/gu, '')
      .trim()
      .replace(/\s/g, '-')
    const count = seen.get(slug) ?? 0
    seen.set(slug, count + 1)
    anchors.add(count === 0 ? slug : `${slug}-${count}`)
  }
  return anchors
}

type Link = { readonly from: string; readonly target: string; readonly path: string; readonly anchor: string }

function getLinks(from: string): readonly Link[] {
  return [...prose(from).matchAll(/\]\(([^)\s]+)\)/g)].flatMap(([, target = '']) => {
    if (/^[a-z]+:/.test(target)) return []
    const [file = '', anchor = ''] = target.split('#')
    const path = file === '' ? from : relative(root, resolve(root, dirname(from), file))
    return [{ from, target, path, anchor }]
  })
}

const links = pages.flatMap(getLinks)

describe('documentation links', () => {
  test('lead to files and anchors that exist', () => {
    expect(links.length).toBeGreaterThan(100)
    const broken = links.filter(
      ({ path, anchor }) => !existsSync(join(root, path)) || (anchor !== '' && !getAnchors(path).has(anchor)),
    )
    expect(broken.map(({ from, target }) => `${from}: ${target}`)).toEqual([])
  })

  test('reach every page from the README', () => {
    const reached = new Set(['README.md'])
    for (const page of reached)
      for (const { path } of getLinks(page).filter(link => pages.includes(link.path))) reached.add(path)
    expect(pages.filter(page => !reached.has(page))).toEqual([])
  })

  test('name no Markdown file outside the repository in pages, comments and titles', () => {
    // AGENTS.md is a file of Codex's users, which the prompt for Codex names.
    const known = new Set([...pages, ...pathsUnder('test', /\.md$/), 'AGENTS.md'].map(path => basename(path)))
    const files = [...pages, ...pathsUnder('src', /\.tsx?$/), ...pathsUnder('test', /\.tsx?$/)]
    const missing = files.flatMap(path =>
      [...text(path).matchAll(/(?<![\w.*/$}-])[\w-]+\.md\b/g)]
        .map(([name]) => name)
        .flatMap(name => (known.has(name) ? [] : [`${path}: ${name}`])),
    )
    expect(missing).toEqual([])
  })
})

test('references to decisions: name a record that exists', () => {
  const numbers = new Set(decisions.map(path => basename(path).slice(0, 4)))
  const programs = ['src', 'test', 'drizzle', 'deploy', 'examples'].flatMap(folder =>
    pathsUnder(folder, /\.(tsx?|sql|ya?ml|py|sh|md)$/),
  )
  const named = [...new Set([...pages, ...programs])].flatMap(path =>
    [...text(path).matchAll(/\b(?:decisions?|ADR)[ /]\[?(\d{4})\b/gi)].map(([, number = '']) => ({ path, number })),
  )
  expect(named.length).toBeGreaterThan(20)
  expect(named.filter(({ number }) => !numbers.has(number)).map(({ path, number }) => `${path}: ${number}`)).toEqual([])
})

describe('size of the documentation', () => {
  const getLines = (path: string) => text(path).trimEnd().split('\n')
  const main = ['README.md', ...pathsUnder('docs', /^[\w-]+\.md$/)]

  test('stays within 200 lines of README and 2,200 lines together', () => {
    expect(getLines('README.md').length).toBeLessThanOrEqual(200)
    expect(main.reduce((sum, path) => sum + getLines(path).length, 0)).toBeLessThanOrEqual(2_200)
  })

  test('has no table wider than 160 characters', () => {
    const rows = [...pages, ...pathsUnder('test', /\.md$/)].flatMap(path =>
      getLines(path).map((line, at) => ({ name: `${path}:${at + 1}`, line })),
    )
    expect(rows.filter(({ line }) => line.startsWith('|') && line.length > 160).map(({ name }) => name)).toEqual([])
  })

  test('has a screenshot of at most 200 kB', () => {
    expect(Bun.file(join(root, 'docs/dashboard.png')).size).toBeLessThanOrEqual(200_000)
  })
})

/** Returns text in backticks and code blocks: commands, variables and paths. */
function getCode(path: string): readonly string[] {
  const blocks = [...text(path).matchAll(/^```(\w*)\n([\s\S]*?)^```$/gm)].map(([, , code = '']) => code)
  const spans = [...prose(path).matchAll(/`([^`\n]+)`/g)].map(([, code = '']) => code)
  return [...blocks.flatMap(code => code.split('\n')), ...spans]
}

const code = guides.flatMap(path => getCode(path).map(line => ({ path, line })))

describe('documented commands', () => {
  test('exist in package.json', () => {
    const named = code.flatMap(({ line }) =>
      [...line.matchAll(/\bbun(?:@[\d.]+)? run ([a-z][\w:-]*)/g)].map(([, name = '']) => name),
    )
    expect(named.length).toBeGreaterThan(20)
    expect([...new Set(named)].filter(name => !Object.hasOwn(packageJson.scripts, name))).toEqual([])
  })

  test('match the operator commands of the command line tool', async () => {
    const known = await commandNames()
    const named = code.flatMap(({ line }) =>
      [...line.matchAll(/\b(?:run gateway|src\/cli\.ts) ([a-z][a-z-]*(?: [a-z][a-z-]*)?)/g)].map(
        ([, words = '']) => words,
      ),
    )
    const findCommand = (words: string) => known.find(name => words === name || words.startsWith(`${name} `))
    expect(named.filter(words => findCommand(words) === undefined)).toEqual([])
    expect(known.filter(name => !named.some(words => findCommand(words) === name))).toEqual([])
  })

  test('run files that exist', () => {
    const files = code.flatMap(({ line }) =>
      [...line.matchAll(/\bbun (?:test )?((?:(?:\.\/)?(?:test|src)\/[\w./-]+ ?)+)/g)].flatMap(([, list = '']) =>
        list.trim().split(' '),
      ),
    )
    expect(files.length).toBeGreaterThan(10)
    expect(files.filter(file => file !== './test/x.test.ts' && !existsSync(join(root, file)))).toEqual([])
  })
})

test('Dockerfile: copies the license into the image', () => {
  const [, image = ''] = readFileSync(join(root, 'Dockerfile'), 'utf8')
    .split(/^FROM .*$/m)
    .slice(1)
  expect(image).toMatch(/^COPY (?!--from)(.* )?LICENSE /m)
  expect(readFileSync(join(root, '.dockerignore'), 'utf8').split('\n')).not.toContain('LICENSE')
})

/** Returns the names of all commands from their help. */
async function commandNames(): Promise<readonly string[]> {
  const child = Bun.spawn([process.execPath, programPath('cli.ts'), '--help'], { stdout: 'pipe', stderr: 'pipe' })
  const help = await child.stdout.text()
  return [...help.matchAll(/^ {2}([a-z-]+(?: [a-z-]+)?) {2,}/gm)].map(([, name = '']) => name)
}

test('documented paths: exist', () => {
  const paths = code.flatMap(({ path, line }) =>
    [...line.matchAll(/(?<![\w./-])(?:src|test|deploy|drizzle|docs|examples)\/[\w./-]*\w(?!\*)/g)].map(([name]) => ({
      path,
      name,
    })),
  )
  expect(paths.length).toBeGreaterThan(40)
  const missing = paths.filter(
    ({ name }) => !existsSync(join(root, name)) && !/^(docs\/decisions\/NNNN|test\/x\.test|src\/modules\/$)/.test(name),
  )
  expect(missing.map(({ path, name }) => `${path}: ${name}`)).toEqual([])
})

test('paths in comments: end the path of a file', () => {
  const folders = ['src', 'test', 'drizzle', 'deploy']
  const files = folders.flatMap(folder => pathsUnder(folder, /\.(tsx?|sql|json|txt|tsv)$/))
  const isKnown = (name: string) => files.some(path => path === name || path.endsWith(`/${name}`))
  const named = files
    .filter(path => /\.tsx?$/.test(path))
    .flatMap(path =>
      [...text(path).matchAll(/^ *(?:\*|\/\/|\/\*\*).*/gm)]
        .flatMap(([comment]) => [...comment.matchAll(/`((?:[\w.-]+\/)*[\w-]+\.tsx?)`/g)])
        .map(([, name = '']) => ({ path, name })),
    )
  expect(named.length).toBeGreaterThan(50)
  expect(named.filter(({ name }) => !isKnown(name)).map(({ path, name }) => `${path}: ${name}`)).toEqual([])
})

/** Returns variables that the configuration reads. The values enable the parts that read further variables. */
function variablesRead(): ReadonlySet<string> {
  const asked = new Set<string>()
  const everything = { SMTP_URL: 'smtp://localhost', OPENAI_API_KEY: 'key' }
  const environment = new Proxy<Environment>(everything, {
    get(target, name) {
      asked.add(String(name))
      return target[String(name)]
    },
  })
  getProblems(environment)
  return asked
}

function getProblems(environment: Environment): readonly string[] {
  try {
    readConfig(environment)
    return []
  } catch (cause) {
    if (cause instanceof ConfigError) return cause.problems
    throw cause
  }
}

/** Variables in the pages that the gateway does not read itself, with their reader. */
const foreignVariables: Readonly<Record<string, string>> = {
  GOOGLE_GEMINI_BASE_URL: 'gemini-cli',
  POSTGRES_PASSWORD: 'compose.yaml',
  GATEWAY_MEMORY: 'compose.yaml',
  BUN_IMAGE: 'the build of the image',
  OLLAMA_HOST: 'Ollama',
  NODE_EXTRA_CA_CERTS: 'Bun',
  CHROMIUM_PATH: 'the tests',
  PROPERTY_SEED: 'the property tests',
  ANTHROPIC_AUTH_TOKEN: 'Claude Code',
  CLAUDE_CODE_MAX_CONTEXT_TOKENS: 'Claude Code',
  CLAUDE_CODE_ENABLE_GATEWAY_MODEL_DISCOVERY: 'Claude Code',
  VENVS: 'the runs of Python clients by hand',
  GATEWAY_KEY: 'the examples of clients',
  SESSION_TOKEN: 'the examples of a session',
  MANAGEMENT_KEY: 'the examples of a management key',
  OPENAI_KEY_A: 'the example of a key pool',
  OPENAI_KEY_B: 'the example of a key pool',
  OPENAI_KEY_C: 'the example of a key pool',
  MIRROR_API_KEY: 'the example of a host',
  AZURE_OPENAI_API_KEY: 'the example of Azure',
  AZURE_CLIENT_SECRET: 'the example of Entra ID',
  AWS_REGION: 'a provider of type bedrock',
  AWS_ACCESS_KEY_ID: 'a provider of type bedrock',
  AWS_SECRET_ACCESS_KEY: 'a provider of type bedrock',
  AWS_SESSION_TOKEN: 'a provider of type bedrock',
  AWS_BEARER_TOKEN_BEDROCK: 'a provider of type bedrock',
  AWS_ROLE_ARN: 'a provider of type bedrock',
  AWS_WEB_IDENTITY_TOKEN_FILE: 'a provider of type bedrock',
  GOOGLE_APPLICATION_CREDENTIALS: 'a provider of type vertex',
}

describe('environment variables', () => {
  const ownNames = [...variablesRead()].filter(
    name => !name.endsWith('_FILE') && !/_PROXY$/i.test(name) && name !== 'GATEWAY_WORKER',
  )

  test('match the lists of docs/configuration.md', () => {
    const entries = [...text('docs/configuration.md').matchAll(/^- ((?:`[A-Z][A-Z0-9_]+`(?:, )?)+) \(.*\): \S/gm)]
    const named = entries.flatMap(([, names = '']) => names.split(', ').map(name => name.slice(1, -1)))
    expect(named.sort()).toEqual([...ownNames].sort())
  })

  test('in .env.example are read by the gateway or by compose.yaml, which requires the secrets', () => {
    const named = [...text('.env.example').matchAll(/^(?:# )?([A-Z][A-Z0-9_]+)=/gm)].map(([, name = '']) => name)
    expect(named.length).toBeGreaterThan(10)
    expect(named.filter(name => !ownNames.includes(name) && !text('compose.yaml').includes(`\${${name}`))).toEqual([])
    const required = [...text('compose.yaml').matchAll(/\$\{(\w+):\?/g)].map(([, name = '']) => name)
    expect([...new Set(required)].sort()).toEqual(['JWT_SECRET', 'POSTGRES_PASSWORD'])
    for (const name of required) expect(text('.env.example')).toMatch(new RegExp(`^${name}=$`, 'm'))
  })

  test('in any page are read by the gateway, or listed with their reader', () => {
    const known = new Set([...ownNames, ...Object.keys(foreignVariables)])
    const isKnown = (name: string) =>
      known.has(name) || known.has(name.replace(/_FILE$/, '')) || /^(NAME_FILE|(HTTP|HTTPS|ALL)_PROXY)$/.test(name)
    const named = code.flatMap(({ path, line }) =>
      [...line.matchAll(/(?<![\w./$-])[A-Z][A-Z0-9]*_[A-Z0-9_]*[A-Z0-9]\b/g)].map(([name]) => ({ path, name })),
    )
    expect(named.length).toBeGreaterThan(80)
    expect(named.filter(({ name }) => !isKnown(name)).map(({ path, name }) => `${path}: ${name}`)).toEqual([])
  })
})

test('documented commands with a management key: link the page that creates it', () => {
  const sets = (path: string) => /^MANAGEMENT_KEY=\$\(curl /m.test(text(path))
  const users = pages.filter(path => text(path).includes('$MANAGEMENT_KEY') && !sets(path))
  expect(pages.filter(sets)).toEqual(['docs/guides/automation.md'])
  expect(users.length).toBeGreaterThan(2)
  expect(
    users.filter(path => !text(path).includes('`$MANAGEMENT_KEY` is a [management key](guides/automation.md)')),
  ).toEqual([])
})

describe('documented configuration files', () => {
  const folder = mkdtempSync(join(tmpdir(), 'gateway-ai-docs-'))
  afterAll(() => rmSync(folder, { recursive: true, force: true }))

  const examples = ['docs/configuration.md', 'docs/providers.md', 'docs/moderation.md', 'docs/embeddings.md'].flatMap(
    path =>
      [...text(path).matchAll(/^```json\n([\s\S]*?)^```$/gm)].map(([, json = ''], at) => ({
        name: `${path} ${at + 1}`,
        json,
      })),
  )

  test('include several examples', () => expect(examples.length).toBeGreaterThan(4))

  test.each(examples)('$name: starts the gateway', ({ name, json }) => {
    const path = join(folder, `${name.replace(/\W/g, '-')}.json`)
    writeFileSync(path, json)
    const keys = {
      ...Object.fromEntries(Object.keys(foreignVariables).map(variable => [variable, 'k'])),
      ...Object.fromEntries(presets.map(({ key }) => [key, 'k'])),
      OPENAI_API_KEY: 'k',
      ANTHROPIC_API_KEY: 'k',
      GOOGLE_APPLICATION_CREDENTIALS: serviceAccountFile(),
    }
    expect(getProblems({ GATEWAY_CONFIG: path, ...keys })).toEqual([])
  })
})

/** Packages whose classes the examples of the other pages use; a plain name of the gateway's own is resolved by its `exports`. */
const packages = new Set([...Object.keys(packageJson.devDependencies), 'gateway-ai/client'])

describe('pages of clients', () => {
  const clients = pathsUnder('docs/clients', /\.md$/).filter(path => !path.endsWith('README.md'))
  const blocks = clients.flatMap(path =>
    [...text(path).matchAll(/^```(\w+)\n([\s\S]*?)^```$/gm)].map(([, language = '', code = ''], at) => ({
      name: `${path} ${at + 1}`,
      language,
      code,
    })),
  )
  const of = (...languages: readonly string[]) => blocks.filter(({ language }) => languages.includes(language))

  test('appear in the index and name their proof', () => {
    const index = getLinks('docs/clients/README.md').map(({ path }) => path)
    expect(clients.length).toBeGreaterThan(10)
    expect(clients.filter(path => !index.includes(path))).toEqual([])
    const unproven = clients.filter(path => !/^(?:\*\*)?Proven by(?:\*\*)?: .*`test\//m.test(text(path)))
    expect(unproven).toEqual([])
  })

  test.each(of('ts'))('$name: is TypeScript with packages of the tests', ({ code }) => {
    const imports = new Bun.Transpiler({ loader: 'ts' }).scanImports(code)
    expect(imports.map(({ path }) => path).filter(path => !packages.has(path))).toEqual([])
  })

  test.each(of('json', 'toml', 'yaml'))('$name: is valid', ({ language, code }) => {
    const parse = { json: JSON.parse, toml: Bun.TOML.parse, yaml: Bun.YAML.parse }[language]
    expect(parse?.(code)).toBeObject()
  })

  test('name models that exist', () => {
    const known = buildCatalog(catalog)
    const embeddings = buildCatalog(publishedEmbeddingModels)
    const named = blocks.flatMap(({ name, code }) =>
      [
        ...code.matchAll(
          /(?<![\w@/-])(?:(?:openai|anthropic|google)\/)?(?:gpt|claude|gemini|text-embedding)-[\w.-]*\d\b[\w.-]*/g,
        ),
      ].map(([model]) => ({ name, model })),
    )
    expect(named.length).toBeGreaterThan(15)
    const unknown = named.filter(({ model }) => known.resolve(model) === null && embeddings.resolve(model) === null)
    expect(unknown).toEqual([])
  })

  test('give a base URL with `/v1`, except to clients of Anthropic, of Google and of the gateway itself', () => {
    const bare = blocks
      .filter(({ code }) => /127\.0\.0\.1:3000(?!\/v1)/.test(code))
      .map(({ name }) => name.split(' ')[0])
    const expected = 'anthropic-node anthropic-python claude-code gateway-client gemini langchain llamaindex python'
    expect([...new Set(bare)].sort()).toEqual(expected.split(' ').map(name => `docs/clients/${name}.md`))
  })
})

test('docs/api.md: names every error code with its status', () => {
  const rows = new Map(
    [...text('docs/api.md').matchAll(/^- (\d{3}: .*)$/gm)]
      .flatMap(([, line = '']) => line.split(/; (?=\d{3}: )/))
      .map(part => [part.slice(0, 3), part.slice(5)]),
  )
  const missing = Object.entries(errorTable).filter(([code, { status }]) => {
    // A wrong `Host` is sent as `forbidden` too, with its own status.
    const row = rows.get(String(code === 'misdirected' ? errorTable.forbidden.status : status))
    return row?.includes(`\`${code === 'misdirected' ? 'forbidden' : code}\``) !== true
  })
  expect(missing).toEqual([])
})
