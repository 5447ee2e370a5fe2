import { afterAll, describe, expect, test } from 'bun:test'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { ConfigError, type Environment, readConfig, readPlans, readStoreConfig } from '../../src/config/config.ts'
import { webPrices } from '../../src/core/chat/web-sources.ts'
import { plans } from '../../src/core/limits/plans.ts'
import { defaultLevelShares } from '../../src/models/capability-levels.ts'

const folder = mkdtempSync(join(tmpdir(), 'gateway-ai-config-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const secret = 'a secret of more than thirty-two bytes'

function file(name: string, content: unknown): string {
  const path = join(folder, name)
  writeFileSync(path, typeof content === 'string' ? content : JSON.stringify(content))
  return path
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

describe('configuration without variables', () => {
  const config = readConfig({})

  test('has the documented defaults', () => {
    expect(config).toMatchObject({
      port: 3000,
      host: '127.0.0.1',
      dataDirectory: './.data',
      databaseUrl: null,
      redisUrls: [],
      jwtSecret: null,
      providers: [],
      extraModels: [],
      modelChanges: [],
      plans,
      defaultMaxOutputTokens: 16_384,
      maximumShortfall: 100_000_000,
      deadlines: {
        connectMs: 3_000,
        firstByteMs: 30_000,
        silenceMs: 60_000,
        firstContentMs: 120_000,
        firstContentReasoningMs: 300_000,
        totalMs: 600_000,
      },
      drainMs: 30_000,
      drainNoticeMs: 3_000,
      allowedHosts: null,
      logLevel: 'info',
      metricsToken: null,
      otlp: null,
    })
  })

  test('trusts no proxy', () => {
    for (const address of ['127.0.0.1', '10.0.0.1', '::1', '']) expect(config.isTrustedProxy(address)).toBe(false)
  })

  test('treats an empty or blank value as unset', () => {
    expect(readConfig({ PORT: '', LOG_LEVEL: ' ', DATABASE_URL: '', OPENAI_API_KEY: ' ' })).toMatchObject({
      port: 3000,
      logLevel: 'info',
      databaseUrl: null,
      providers: [],
    })
  })
})

describe('invalid configuration value', () => {
  const postgres = 'postgres://localhost/gateway'
  /** Invalid values with the reported line. */
  const wrong: readonly (readonly [Environment, string | RegExp])[] = [
    ...[
      ['PORT', '65536', '0 to 65535'],
      ['PORT', '-1', '0 to 65535'],
      ['PORT', '3000x', '0 to 65535'],
      ['PORT', '1e3', '0 to 65535'],
      ['DEFAULT_MAX_OUTPUT_TOKENS', '0', '1 to 1000000'],
      ['CONNECT_TIMEOUT_MS', '0', '1 to 60000'],
      ['FIRST_BYTE_TIMEOUT_MS', 'x', '1 to 1800000'],
      ['SILENCE_TIMEOUT_MS', '0', '1 to 1800000'],
      ['FIRST_CONTENT_TIMEOUT_MS', '9999999', '1 to 1800000'],
      ['FIRST_CONTENT_REASONING_TIMEOUT_MS', '1.5', '1 to 1800000'],
      ['TOTAL_TIMEOUT_MS', '0', '1 to 3600000'],
      ['DRAIN_TIMEOUT_MS', '600001', '0 to 600000'],
      ['DRAIN_NOTICE_MS', 'soon', '0 to 60000'],
      ['BUN_CONFIG_MAX_HTTP_REQUESTS', '0', '1 to 65535'],
    ].map(
      ([name = '', value = '', bounds = '']) =>
        [{ [name]: value }, `${name}: must be a whole number from ${bounds}`] as const,
    ),
    [{ LOG_LEVEL: 'loud' }, 'LOG_LEVEL: must be one of debug, info, warn, error'],
    [{ METRICS_TOKEN: 'short' }, 'METRICS_TOKEN: must be 16 to 512 visible ASCII characters (openssl rand -base64 24)'],
    [
      { METRICS_TOKEN: 'long enough but with blanks' },
      'METRICS_TOKEN: must be 16 to 512 visible ASCII characters (openssl rand -base64 24)',
    ],
    [
      { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://collector.example.com:4318' },
      'OTEL_EXPORTER_OTLP_ENDPOINT: must be https; plain http is allowed only on loopback or private networks',
    ],
    [
      { OTEL_EXPORTER_OTLP_HEADERS: 'authorization' },
      'OTEL_EXPORTER_OTLP_HEADERS: must be name=value pairs separated by commas',
    ],
    [{ MAX_SHORTFALL_USD: '-1' }, 'MAX_SHORTFALL_USD: must be an amount of US dollars from 0 to 20000000, like 1.50'],
    [
      { OTEL_TRACES_SAMPLER_ARG: '1.5' },
      'OTEL_TRACES_SAMPLER_ARG: must be a share of requests from 0 to 1, such as 0.1',
    ],
    [{ OTEL_METRIC_EXPORT_INTERVAL: '10' }, 'OTEL_METRIC_EXPORT_INTERVAL: must be a whole number from 1000 to 3600000'],
    [{ DATABASE_URL: 'mysql://x' }, 'DATABASE_URL: must be a postgres:// or postgresql:// URL'],
    [{ DATABASE_URL: 'not an address' }, /^DATABASE_URL: must be/],
    [{ DATABASE_URL: postgres }, /^JWT_SECRET: required with DATABASE_URL/],
    [{ JWT_SECRET: 'x'.repeat(31) }, 'JWT_SECRET: must be at least 32 bytes long'],
    [{ JWT_SECRET_PREVIOUS: 'short' }, 'JWT_SECRET_PREVIOUS: must be at least 32 bytes long'],
    [{ JWT_SECRET_FILE: '/nowhere' }, 'JWT_SECRET_FILE: cannot read /nowhere'],
    [{ OPENAI_API_KEY_FILE: '/nowhere' }, 'OPENAI_API_KEY_FILE: cannot read /nowhere'],
    [
      { REDIS_URL: 'localhost:6379' },
      'REDIS_URL: must be a redis:// or rediss:// URL, or the URLs of a cluster’s nodes separated by commas, or those of Sentinels (redis+sentinel://host:26379/name)',
    ],
    [
      { REDIS_URL: 'redis+sentinel://a:26379/one,redis+sentinel://b:26379/two' },
      'REDIS_URL: Sentinel URLs must all end with the name of the same primary',
    ],
    [
      { REDIS_URL: 'redis+sentinel://a:26379' },
      'REDIS_URL: Sentinel URLs must all end with the name of the same primary',
    ],
    [
      { REDIS_URL: 'redis+sentinel://a/one?password=secret' },
      'REDIS_URL: a Sentinel URL accepts only sentinel_username and sentinel_password after "?", each once',
    ],
    [{ WORKERS: 'many' }, 'WORKERS: must be a count or "auto"'],
    [{ WORKERS: '0' }, 'WORKERS: must be a count or "auto"'],
    [{ WORKERS: '3' }, 'WORKERS: 3 processes share limits in Redis; set REDIS_URL, or WORKERS=1'],
    [{ OPENAI_BASE_URL: 'example.com' }, 'OPENAI_BASE_URL: must be an http(s) URL'],
    [{ OPENAI_BASE_URL: 'file:///etc/passwd' }, 'OPENAI_BASE_URL: must be an http(s) URL'],
    [{ ANTHROPIC_BASE_URL: 'http://example.com' }, /^ANTHROPIC_BASE_URL: must be https/],
    [{ ANTHROPIC_BASE_URL: 'http://8.8.8.8' }, /^ANTHROPIC_BASE_URL: must be https/],
    [{ GEMINI_BASE_URL: 'https://user:pass@example.com' }, 'GEMINI_BASE_URL: must not contain credentials'],
    ...['http://0.0.0.0', '0.0.0.0:3000', '[::1]', 'a b', '-', '256.0.0.1', '*'].map(
      host => [{ HOST: host }, /^HOST: must be an address or a name/] as const,
    ),
    ...['https://a.example', 'a.example:443', '*', '*.a.example', 'a.example/', '::1', '[::g]', '1.2.3'].map(
      host =>
        [
          { ALLOWED_HOSTS: host },
          `ALLOWED_HOSTS: "${host}" is not a host name; write it as clients do, such as gateway.example.com or [::1], without scheme, port or wildcard`,
        ] as const,
    ),
    [{ ALLOWED_HOSTS: ', ,' }, 'ALLOWED_HOSTS: is empty; list at least one host or unset it'],
    [{ SEARXNG_URL: 'http://search.example.com' }, /^SEARXNG_URL: must be https/],
    [{ TAVILY_API_KEY_FILE: '/nowhere' }, 'TAVILY_API_KEY_FILE: cannot read /nowhere'],
    [{ BRAVE_API_KEY: 'k', BRAVE_BASE_URL: 'x' }, 'BRAVE_BASE_URL: must be an http(s) URL'],
    [
      { GATEWAY_CONFIG: file('rewriter.json', { enhancement: { model: 'nobody' } }) },
      'GATEWAY_CONFIG: enhancement.model: no configured provider has a model of that name',
    ],
    [
      { GATEWAY_CONFIG: file('judge.json', { safety: { moderation: { model: 'nobody' } } }) },
      'GATEWAY_CONFIG: safety.moderation.model: no configured provider has a model of that name',
    ],
    [
      { GATEWAY_CONFIG: file('far.json', { enhancement: { model: 'openai/gpt-5.5' } }), ANTHROPIC_API_KEY: 'key' },
      'GATEWAY_CONFIG: enhancement.model: no configured provider has a model of that name',
    ],
    [{ GATEWAY_CONFIG: file('web.json', { web: { search_usd: -1 } }) }, /^GATEWAY_CONFIG: web\.search_usd: /],
    [
      { GATEWAY_CONFIG: file('share.json', { routing: { strong_share: 2 } }) },
      /^GATEWAY_CONFIG: routing\.strong_share: /,
    ],
    [
      { GATEWAY_CONFIG: file('shares.json', { routing: { strong_share: 0.7, middle_share: 0.7 } }) },
      /^GATEWAY_CONFIG: routing: .* together/,
    ],
    [{ TRUSTED_PROXIES: 'balancer' }, 'TRUSTED_PROXIES: "balancer" is not an address or CIDR range'],
    [{ TRUSTED_PROXIES: '10.0.0.0/33' }, /^TRUSTED_PROXIES: "10\.0\.0\.0\/33"/],
    // As a number, an empty text is 0, and a range of 0 bits includes every address.
    [{ TRUSTED_PROXIES: '10.0.0.0/' }, /^TRUSTED_PROXIES: "10\.0\.0\.0\/"/],
    [{ TRUSTED_PROXIES: '::1/129' }, /^TRUSTED_PROXIES: "::1\/129"/],
    [{ GATEWAY_CONFIG: '/nowhere.json' }, 'GATEWAY_CONFIG: cannot read /nowhere.json: there is no such file or folder'],
    [{ GATEWAY_CONFIG: file('torn.json', '{') }, /^GATEWAY_CONFIG: cannot read .*torn\.json: it is not valid JSON$/],
    [
      { GATEWAY_CONFIG: file('unknown.json', { modles: [] }) },
      'GATEWAY_CONFIG: modles: unknown key; use one of providers, models, plans, web, safety, enhancement, routing, rules, $schema',
    ],
    [
      { GATEWAY_CONFIG: file('taken.json', { providers: [provider({ id: 'openai' })] }) },
      'GATEWAY_CONFIG: provider id "openai" is already used; choose another',
    ],
    [
      { GATEWAY_CONFIG: file('same.json', { providers: [provider({ models: [model('a'), model('b', 'A')] })] }) },
      'GATEWAY_CONFIG: provider "local": two models are named "a"; choose another name for one',
    ],
    [
      { GATEWAY_CONFIG: file('auto.json', { providers: [provider({ models: [model('Gateway-AI')] })] }) },
      /^GATEWAY_CONFIG: provider "local": a model is named "gateway-ai"/,
    ],
    [
      { GATEWAY_CONFIG: file('key.json', { providers: [provider({ api_key_env: 'LOCAL_KEY' })] }) },
      'GATEWAY_CONFIG: provider "local" names LOCAL_KEY, which is not set',
    ],
    [
      { GATEWAY_CONFIG: file('plain.json', { providers: [provider({ base_url: 'http://example.com/v1' })] }) },
      /^GATEWAY_CONFIG: provider "local": base_url must be https/,
    ],
    [
      { GATEWAY_CONFIG: file('priceless.json', { providers: [provider({ models: [{ id: 'free' }] })] }) },
      'GATEWAY_CONFIG: providers.0.models.0.pricing: is required: an object',
    ],
  ]

  test('reports a line that begins with its name', () => {
    for (const [environment, line] of wrong) {
      const problems = getProblems(environment)
      expect({ environment, count: problems.length >= 1 }).toEqual({ environment, count: true })
      if (typeof line === 'string') expect(problems).toEqual([line])
      else expect(problems[0]).toMatch(line)
    }
  })

  test('reports all values together', () => {
    const all = {
      PORT: 'x',
      LOG_LEVEL: 'x',
      DATABASE_URL: postgres,
      JWT_SECRET_PREVIOUS: 'x',
      REDIS_URL: 'x',
      WORKERS: 'x',
      OPENAI_BASE_URL: 'x',
      TRUSTED_PROXIES: 'x, y',
      GATEWAY_CONFIG: '/nowhere.json',
      DRAIN_TIMEOUT_MS: 'x',
      HOST: 'x:1',
      ALLOWED_HOSTS: '*',
    }
    const names = getProblems(all).map(problem => problem.split(':')[0] ?? '')
    expect(names.sort()).toEqual(
      ['JWT_SECRET', 'TRUSTED_PROXIES', ...Object.keys(all)].filter(name => name !== 'DATABASE_URL').sort(),
    )
  })

  test('reports file errors independently of each other', () => {
    const path = file('many.json', {
      providers: [
        provider({ id: 'Bad Id', base_url: 7 }),
        provider({ id: 'plain', base_url: 'http://example.com/v1', api_key_env: 'PLAIN_KEY' }),
        provider({ id: 'few', models: [], colour: 'red' }),
        provider({ id: 'priceless', base_url: 'http://example.com/v1', models: [{ id: 'x' }] }),
      ],
      models: [
        { provider: 'openai', id: 'gpt-7' },
        { provider: 'mistral', id: 'x' },
      ],
      plans: { usage: { daily_cost_usd: -1 }, gold: {} },
      safety: {
        secrets: 'maybe',
        moderation: { url: 'http://example.com/v1', model: 'judge' },
        allow: ['not a host!', 'partner.example', '*.пример.example'],
        rules: [{ id: 'torn', category: 'internal', patterns: ['a|', 'a ~254 b'], expressions: ['[а-я]+', '[z-a]'] }],
      },
    })
    expect(getProblems({ GATEWAY_CONFIG: path, PORT: 'x' }).map(line => line.replace('GATEWAY_CONFIG: ', ''))).toEqual([
      'providers.0.id: must be a name of at most 32 lower-case letters, digits and hyphens that begins with a letter',
      'providers.0.base_url: must be a string of 8 to 2048 characters',
      'providers.2.colour: unknown key; use one of id, base_url, api_key_env, keys, accounts, extra_fields, policy, models, embedding_models, hosts, type, api_version, tenant_id, client_id, client_secret_env, login_url, scope, region, access_key_id_env, secret_access_key_env, session_token_env, role_arn, web_identity_token_file, sts_url, project, location, service_account_env',
      'providers.2.models: must be an array of 1 to 256 items',
      'providers.3.models.0.pricing: is required: an object',
      'models.1.provider: must be "openai", "anthropic" or "google"',
      'plans.gold: unknown key; use one of evaluation, usage',
      'plans.usage.daily_cost_usd: must be a number from 0 to 20000000',
      'safety.secrets: must be "warn", "mask" or "block"',
      'provider "plain" names PLAIN_KEY, which is not set',
      'provider "plain": base_url must be https; plain http is allowed only on loopback or private networks',
      'provider "priceless": base_url must be https; plain http is allowed only on loopback or private networks',
      'models.0: openai/gpt-7 is new and has no `pricing`: a model without a known price is not routable',
      'models.0: openai/gpt-7 is new: `like` must name a model of openai in the catalog, whose parameters it supports',
      'safety.allow: "not a host!" is not a host name; write it as in partner.example',
      'safety.rules: "torn": the pattern "a|" has a place or a choice without a word: one blank stands between places, one | between choices',
      'safety.rules: "torn": error parsing regexp: invalid character class range: `z-a`',
      'safety.moderation: url must be https; plain http is allowed only on loopback or private networks',
      'PORT: must be a whole number from 0 to 65535',
    ])
  })

  test('reports rules that are too large together', () => {
    const expressions = [...'abcdefgh'].map(letter => `${letter}(x|yz){150}`)
    const rules = expressions.map((expression, n) => ({ id: `r${n}`, category: 'other', expressions: [expression] }))
    const findProblems = (count: number) =>
      getProblems({ GATEWAY_CONFIG: file('large.json', { safety: { rules: rules.slice(0, count) } }) })
    expect(findProblems(1)).toEqual([])
    expect(findProblems(8)).toEqual([
      'GATEWAY_CONFIG: safety.rules: all expressions together are too large; make them fewer, or repetitions shorter',
    ])
  })

  test('repeats no secret', () => {
    const canary = 'canary'
    const problems = getProblems({
      DATABASE_URL: `mysql://gateway:${canary}@localhost/x`,
      JWT_SECRET: canary,
      JWT_SECRET_PREVIOUS: canary,
      OPENAI_BASE_URL: `https://user:${canary}@example.com`,
      REDIS_URL: `http://:${canary}@localhost`,
      GATEWAY_CONFIG: file('secret.json', { providers: [provider({ api_key_env: canary, base_url: [canary] })] }),
    })
    const torn = getProblems({ GATEWAY_CONFIG: file('torn-secret.json', `{"key": ${canary}`) })
    expect([problems.length, torn.length]).toEqual([7, 1])
    expect(torn.join()).not.toContain(canary)
    expect(problems.join('\n')).not.toContain(canary)
  })
})

describe('valid configuration value', () => {
  test('configures a provider by its key, as the only one', () => {
    expect(readConfig({ ANTHROPIC_API_KEY: 'key' }).providers).toEqual([
      { id: 'anthropic', format: 'anthropic', baseUrl: 'https://api.anthropic.com', apiKey: 'key' },
    ])
  })

  test('allows plain http within the machine or the private network', () => {
    const hosts = [
      'localhost:8080',
      '127.0.0.1',
      '[::1]:1',
      '10.1.2.3',
      '172.16.0.1',
      '192.168.1.1',
      'ollama:11434',
      'llm.internal',
    ]
    for (const host of hosts)
      expect({ host, problems: getProblems({ OPENAI_BASE_URL: `http://${host}/v1` }) }).toEqual({ host, problems: [] })
    for (const host of ['172.32.0.1', '11.0.0.1', 'localhost.example.com', '[2001:db8::1]'])
      expect({ host, count: getProblems({ OPENAI_BASE_URL: `http://${host}/v1` }).length }).toEqual({ host, count: 1 })
  })

  test('removes trailing slashes of a base URL', () => {
    const { providers } = readConfig({ OPENAI_API_KEY: 'key', OPENAI_BASE_URL: 'https://example.com/v1//' })
    expect(providers[0]?.baseUrl).toBe('https://example.com/v1')
  })

  test('prefers a secret in a file, without its line end', () => {
    const path = file('secret', `${secret}\n`)
    expect(readConfig({ JWT_SECRET: 'x', JWT_SECRET_FILE: path }).jwtSecret).toBe(secret)
    expect(readConfig({ DATABASE_URL_FILE: file('url', 'postgres://db/x\n'), JWT_SECRET: secret }).databaseUrl).toBe(
      'postgres://db/x',
    )
  })

  test('trusts proxies by address and range of either family', () => {
    const { isTrustedProxy } = readConfig({ TRUSTED_PROXIES: '10.0.0.0/8, 192.0.2.7,fd00::/8' })
    for (const address of ['10.255.0.1', '192.0.2.7', 'fd12::1']) expect(isTrustedProxy(address)).toBe(true)
    for (const address of ['11.0.0.1', '192.0.2.8', 'fe80::1', 'nonsense']) expect(isTrustedProxy(address)).toBe(false)
  })

  test('adds providers with their models from the file', () => {
    const path = file('providers.json', { providers: [provider({ api_key_env: 'LOCAL_KEY' })] })
    const config = readConfig({ GATEWAY_CONFIG: path, LOCAL_KEY: 'key' })
    expect(config.providers).toEqual([
      { id: 'local', format: 'compatible', baseUrl: 'http://127.0.0.1:11434/v1', apiKey: 'key' },
    ])
    expect(config.extraModels.map(({ provider: id, row }) => [id, row.id])).toEqual([['local', 'llama']])
  })

  test('extends extra_fields of a provider, except fields of the gateway', () => {
    const fields = (...extra_fields: readonly string[]) =>
      file('fields.json', { providers: [provider({ extra_fields })] })
    const { providers } = readConfig({ GATEWAY_CONFIG: fields('plugins', 'route') })
    expect(providers[0]?.extraFields).toEqual(['plugins', 'route'])
    for (const name of ['model', 'messages', 'stream', 'tools', 'max_tokens', 'user', 'n'])
      expect(getProblems({ GATEWAY_CONFIG: fields('plugins', name) })).toEqual([
        `GATEWAY_CONFIG: provider "local": extra_fields contains "${name}", which the gateway sets itself; remove it`,
      ])
    expect(getProblems({ GATEWAY_CONFIG: fields('__proto__') })).toHaveLength(1)
  })

  test('adds embedding models to a provider, with or without chat models', () => {
    const row = { id: 'bge', input_per_mtok: 0.01, dimensions: 1024, minimum_dimensions: 64, same_as: 'tei/bge' }
    const { models: _, ...tei } = provider({ id: 'tei', embedding_models: [row] })
    const config = readConfig({ GATEWAY_CONFIG: file('embeddings.json', { providers: [tei, provider({})] }) })
    expect(config.embeddingModels).toEqual([{ provider: 'tei', row }])
    expect(config.extraModels.map(({ provider: id }) => id)).toEqual(['local'])
    const { models: __, ...bare } = provider({})
    for (const [wrong, problem] of [
      [bare, 'provider "local" has no `models`, `embedding_models` or `hosts`; add one'],
      [provider({ embedding_models: [{ id: 'bge' }] }), 'providers.0.embedding_models.0.input_per_mtok: is required'],
      [provider({ embedding_models: [{ ...row, id: 'Llama' }] }), 'provider "local": two models are named "llama"'],
      [
        provider({ embedding_models: [{ ...row, dimensions: 8 }] }),
        'embedding model "bge": `minimum_dimensions` is above `dimensions`',
      ],
      [
        provider({ embedding_models: [{ id: 'bge', input_per_mtok: 0, minimum_dimensions: 8 }] }),
        'embedding model "bge" has `minimum_dimensions` and no `dimensions`; add it',
      ],
    ] as const)
      expect(getProblems({ GATEWAY_CONFIG: file('wrong-embeddings.json', { providers: [wrong] }) })).toEqual([
        expect.stringContaining(problem),
      ])
  })

  test('turns image_urls off for a server on a private network unless set', () => {
    const given = (base_url: string, capabilities?: object) => {
      const [first] = readConfig({
        GATEWAY_CONFIG: file('images.json', {
          providers: [
            provider({
              base_url,
              models: [
                { id: 'm', pricing: { input_per_mtok: 0, output_per_mtok: 0 }, ...(capabilities && { capabilities }) },
              ],
            }),
          ],
        }),
      }).extraModels
      return first?.row.capabilities?.image_urls
    }
    expect(given('http://127.0.0.1:11434/v1')).toBe(false)
    expect(given('http://vllm.internal/v1')).toBe(false)
    expect(given('https://api.example.com/v1')).toBe(true)
    expect(given('http://127.0.0.1:11434/v1', { image_urls: true })).toBe(true)
  })

  test('finds the rewriting model by any of its names', () => {
    const local = { providers: [provider({})], enhancement: { model: 'llama' } }
    expect(readConfig({ GATEWAY_CONFIG: file('own-rewriter.json', local) }).rewriter).toBe('local/llama')
    const simulated = { enhancement: { model: 'gpt-5.5' } }
    expect(readConfig({ GATEWAY_CONFIG: file('rewriter-5.json', simulated) }).rewriter).toBe('openai/gpt-5.5')
    expect(readConfig({}).rewriter).toBeNull()
  })

  test('changes and adds catalog models and plan limits from the file', () => {
    const models = [{ provider: 'openai', id: 'gpt-5.5', quality: 0.9 }]
    const path = file('changes.json', { models, plans: { evaluation: { daily_cost_usd: 1.5, daily_tokens: 0 } } })
    const config = readConfig({ GATEWAY_CONFIG: path })
    expect<unknown>(config.modelChanges).toEqual(models)
    expect(config.plans).toEqual({
      ...plans,
      evaluation: { ...plans.evaluation, dailyCostMicrocents: 150_000_000, dailyTokens: 0 },
    })
    expect(readPlans({ GATEWAY_CONFIG: path, PORT: 'x' })).toEqual(config.plans)
    expect(readPlans({})).toEqual(plans)
  })

  test('keeps a catalog name for its model', () => {
    const taken = { provider: 'openai', id: 'gpt-5.5', aliases: ['gpt-4.1'] }
    expect(getProblems({ GATEWAY_CONFIG: file('taken-name.json', { models: [taken] }) })).toEqual([
      'GATEWAY_CONFIG: models: provider "openai": two models are named "gpt-4.1"; choose another name for one',
    ])
  })

  test('accepts listen addresses of both families and names, and Host headers', () => {
    for (const host of ['0.0.0.0', '::', '::1', 'localhost', 'gateway', 'a-b.example.com'])
      expect(readConfig({ HOST: host }).host).toBe(host)
    expect(readConfig({ ALLOWED_HOSTS: '10.0.0.1, [::1], a_b.example' }).allowedHosts).toEqual([
      '10.0.0.1',
      '[::1]',
      'a_b.example',
    ])
  })

  test('orders search back ends independent of the variables; without any there is none', () => {
    const all = {
      TAVILY_API_KEY: 't',
      BRAVE_API_KEY: 'b',
      SEARXNG_URL: 'http://searxng:8080/',
      TAVILY_BASE_URL: 'https://t.example/',
    }
    expect(readConfig(all).web.search).toEqual([
      { id: 'searxng', baseUrl: 'http://searxng:8080' },
      { id: 'brave', baseUrl: null, apiKey: 'b' },
      { id: 'tavily', baseUrl: 'https://t.example', apiKey: 't' },
    ])
    expect(readConfig({ TAVILY_BASE_URL: 'https://t.example' }).web).toEqual({
      search: [],
      prices: webPrices,
      policy: undefined,
    })
  })

  test('sets the shares of requests for stronger models', () => {
    const path = file('routing.json', { routing: { strong_share: 0.5, middle_share: 0.25 } })
    expect(readConfig({ GATEWAY_CONFIG: path }).routing).toEqual({
      strong: 0.5,
      middle: 0.25,
      baselineModel: null,
      judgeModel: null,
    })
    expect(readConfig({}).routing).toEqual({ ...defaultLevelShares, baselineModel: null, judgeModel: null })
  })

  test('sets exact prices of web access', () => {
    const path = file('prices.json', { web: { search_usd: 0.00123456, fetch_usd: 0 } })
    expect(readConfig({ GATEWAY_CONFIG: path }).web.prices).toEqual({ search: 123_456, fetch: 0 })
  })

  test('compares host names in lower case', () => {
    expect(readConfig({ ALLOWED_HOSTS: 'Gateway.Example.com, b' }).allowedHosts).toEqual(['gateway.example.com', 'b'])
  })
})

describe('configuration warnings', () => {
  const calm = { BUN_CONFIG_MAX_HTTP_REQUESTS: '8192' }

  test('do not occur with `bun run start`', () => {
    expect(readConfig(calm).warnings).toEqual([])
  })

  test("include a low limit of concurrent upstream calls, such as Bun's default", () => {
    expect(readConfig({}).warnings).toEqual([expect.stringMatching(/^BUN_CONFIG_MAX_HTTP_REQUESTS: only 256 /)])
    expect(readConfig({ BUN_CONFIG_MAX_HTTP_REQUESTS: '1023' }).warnings).toHaveLength(1)
  })

  test('include a base URL without its key, and disable that provider', () => {
    const key = { ANTHROPIC_API_KEY: 'key' }
    const config = readConfig({
      ...calm,
      ...key,
      OPENAI_BASE_URL: 'http://localhost:1',
      ANTHROPIC_BASE_URL: 'http://localhost:2',
    })
    expect(config.warnings).toEqual([
      'OPENAI_BASE_URL is set without OPENAI_API_KEY: provider openai is disabled; set both or neither',
    ])
    expect(config.providers.map(({ id }) => id)).toEqual(['anthropic'])
  })

  test('include a proxy for provider calls in any variable', () => {
    for (const name of ['HTTP_PROXY', 'HTTPS_PROXY', 'http_proxy', 'https_proxy', 'ALL_PROXY'])
      expect(readConfig({ ...calm, [name]: 'http://user:canary@proxy:3128' }).warnings).toEqual([
        `${name} is set: calls to providers will go through that proxy`,
      ])
  })
})

test('readStoreConfig: reads the data location although other values are invalid', () => {
  const rest = { PORT: 'x', LOG_LEVEL: 'x', WORKERS: '9', GATEWAY_CONFIG: '/nowhere' }
  expect(readStoreConfig({ ...rest, GATEWAY_DATA_DIR: '/data' })).toMatchObject({
    dataDirectory: '/data',
    databaseUrl: null,
  })
  expect(readStoreConfig({ ...rest, DATABASE_URL: 'postgres://db/x' }).databaseUrl).toBe('postgres://db/x')
  expect(() => readStoreConfig({ DATABASE_URL: 'db/x' })).toThrow(ConfigError)
})

function model(id: string, ...aliases: string[]) {
  return { id, aliases, pricing: { input_per_mtok: 0, output_per_mtok: 0 } }
}

function provider(changes: Readonly<Record<string, unknown>>) {
  return {
    id: 'local',
    base_url: 'http://127.0.0.1:11434/v1',
    models: [{ id: 'llama', pricing: { input_per_mtok: 0, output_per_mtok: 0 } }],
    ...changes,
  }
}

describe('mail configuration', () => {
  const mail = {
    SMTP_URL: 'smtp://127.0.0.1:25',
    MAIL_FROM: 'a@example.test',
    PUBLIC_URL: 'https://gateway.example.test',
  }

  test('requires sender and link URL and reports each problem', () => {
    expect(readConfig({}).mail).toBeNull()
    expect(readConfig(mail).mail).toEqual({
      smtpUrl: mail.SMTP_URL,
      from: mail.MAIL_FROM,
      publicUrl: mail.PUBLIC_URL,
      requireTls: false,
    })
    const wrong: readonly [Environment, string][] = [
      [{ SMTP_URL: mail.SMTP_URL }, 'MAIL_FROM: required'],
      [{ SMTP_URL: mail.SMTP_URL, MAIL_FROM: mail.MAIL_FROM }, 'PUBLIC_URL: required'],
      [{ ...mail, SMTP_URL: 'http://mail.example.test' }, 'SMTP_URL: must be'],
      [{ ...mail, SMTP_URL: 'nonsense' }, 'SMTP_URL: must be'],
      [{ ...mail, MAIL_FROM: 'nobody' }, 'MAIL_FROM: must be'],
      [{ ...mail, MAIL_FROM: 'a@b\r\nBcc: c@d' }, 'MAIL_FROM: must be'],
      [{ ...mail, PUBLIC_URL: 'https://gateway.example.test/path' }, 'PUBLIC_URL: must be an origin'],
      [{ ...mail, PUBLIC_URL: 'http://gateway.example.test' }, 'PUBLIC_URL: must be https'],
    ]
    for (const [environment, problem] of wrong)
      expect([environment, getProblems(environment).some(line => line.startsWith(problem))]).toEqual([
        environment,
        true,
      ])
  })

  test('requires TLS for credentials to another network', () => {
    const requires = (url: string) => readConfig({ ...mail, SMTP_URL: url }).mail?.requireTls
    expect(requires('smtp://me:secret@smtp.example.test')).toBe(true)
    expect(requires('smtp://me:secret@mailhog')).toBe(false)
    expect(requires('smtps://me:secret@smtp.example.test')).toBe(false)
  })

  test('warns about a sender without a server and sends nothing', () => {
    const { mail: none, warnings } = readConfig({ MAIL_FROM: mail.MAIL_FROM })
    expect(none).toBeNull()
    expect(warnings.some(line => line.startsWith('MAIL_FROM'))).toBe(true)
  })
})

describe('registration configuration', () => {
  test('defaults to open and accepts domains in any case', () => {
    expect(readConfig({}).registration).toEqual({ mode: 'open', domains: null })
    expect(readConfig({ REGISTRATION: 'Closed' }).registration.mode).toBe('closed')
    const { registration, warnings } = readConfig({ REGISTRATION_DOMAINS: 'Example.com, b.example' })
    expect(registration).toEqual({ mode: 'open', domains: ['example.com', 'b.example'] })
    expect(warnings.some(line => line.startsWith('REGISTRATION_DOMAINS'))).toBe(true)
  })

  test('defaults to closed as soon as clients of other machines can reach the gateway', () => {
    const database = { DATABASE_URL: 'postgres://u@db/x', JWT_SECRET: 'x'.repeat(64) }
    for (const environment of [
      database,
      { PUBLIC_URL: 'https://gateway.example.com' },
      ...['0.0.0.0', '::', '192.168.1.2', 'gateway.internal'].map(HOST => ({ HOST })),
    ]) {
      const { registration, warnings } = readConfig(environment)
      expect([environment, registration.mode]).toEqual([environment, 'closed'])
      expect(warnings.some(line => line.startsWith('REGISTRATION'))).toBe(false)
      const opened = readConfig({ ...environment, REGISTRATION: 'open' })
      expect(opened.registration.mode).toBe('open')
      expect(opened.warnings.some(line => line.startsWith('REGISTRATION=open'))).toBe(true)
    }
    for (const HOST of ['127.0.0.1', 'localhost', '::1', '127.1.2.3'])
      expect(readConfig({ HOST }).registration.mode).toBe('open')
  })

  test('reports each invalid value', () => {
    const wrong: readonly [Environment, string][] = [
      [{ REGISTRATION: 'maybe' }, 'REGISTRATION: must be one of'],
      [{ REGISTRATION_DOMAINS: ',' }, 'REGISTRATION_DOMAINS: is empty'],
      [{ REGISTRATION_DOMAINS: '@example.com' }, 'REGISTRATION_DOMAINS: "@example.com"'],
      [{ REGISTRATION_DOMAINS: '*.example.com' }, 'REGISTRATION_DOMAINS: "*.example.com"'],
      [{ REGISTRATION: 'closed', REGISTRATION_DOMAINS: 'a.example' }, 'REGISTRATION_DOMAINS: has no effect'],
    ]
    for (const [environment, problem] of wrong)
      expect([environment, getProblems(environment).some(line => line.startsWith(problem))]).toEqual([
        environment,
        true,
      ])
  })
})

test('OWNER_UPGRADES: defaults to refuse, widens the warning of open registration, and fails beside Stripe', () => {
  expect(readConfig({}).ownerUpgrades).toBe(false)
  const open = { HOST: '0.0.0.0', REGISTRATION: 'open' }
  const findWarning = (environment: Environment) =>
    readConfig(environment).warnings.find(line => line.startsWith('REGISTRATION=open'))
  expect(findWarning(open)).toContain('within the plan `evaluation`')
  expect(readConfig({ OWNER_UPGRADES: 'allow' }).ownerUpgrades).toBe(true)
  expect(findWarning({ ...open, OWNER_UPGRADES: 'allow' })).toContain('within the plan `usage` (OWNER_UPGRADES=allow)')
  const stripe = { STRIPE_SECRET_KEY: 'sk_test_1', STRIPE_WEBHOOK_SECRET: 'whsec_0123456789abcdefghijklmnop' }
  expect(getProblems({ ...stripe, OWNER_UPGRADES: 'allow' })).toEqual([expect.stringMatching(/^OWNER_UPGRADES: /)])
  expect(getProblems({ OWNER_UPGRADES: 'yes' })).toEqual([expect.stringMatching(/^OWNER_UPGRADES: must be one of/)])
})

test('telemetry configuration: exports to an endpoint with its headers', () => {
  const token = 'a-token-for-scrapes-0123456789'
  const config = readConfig({
    METRICS_TOKEN_FILE: file('metrics-token', `${token}\n`),
    OTEL_EXPORTER_OTLP_ENDPOINT: 'http://otel-collector:4318/',
    OTEL_EXPORTER_OTLP_HEADERS: ' authorization = Basic%20YTpi== , x-tenant=one ',
    OTEL_TRACES_SAMPLER_ARG: '.5',
  })
  expect(config.metricsToken).toBe(token)
  expect(config.otlp).toEqual({
    endpoint: 'http://otel-collector:4318',
    headers: { authorization: 'Basic YTpi==', 'x-tenant': 'one' },
    sampleRatio: 0.5,
    metricsEveryMs: 60_000,
  })
  expect(readConfig({ OTEL_EXPORTER_OTLP_HEADERS: 'x=y', OTEL_TRACES_SAMPLER_ARG: '1' }).otlp).toBeNull()
})

describe('body limits configuration', () => {
  const megabyte = 1_048_576

  test('has defaults for a container of 512 MB and is set in megabytes', () => {
    expect(readConfig({}).bodies).toEqual({ process: 48 * megabyte, owner: 36 * megabyte })
    expect(readConfig({ BODIES_IN_FLIGHT_MB: '512', BODIES_IN_FLIGHT_PER_ACCOUNT_MB: '128' }).bodies).toEqual({
      process: 512 * megabyte,
      owner: 128 * megabyte,
    })
  })

  test.each([
    [{ BODIES_IN_FLIGHT_MB: '39' }, 'BODIES_IN_FLIGHT_MB: must be a whole number from 40'],
    [{ BODIES_IN_FLIGHT_PER_ACCOUNT_MB: '34' }, 'BODIES_IN_FLIGHT_PER_ACCOUNT_MB: must be a whole number from 35'],
    [{ BODIES_IN_FLIGHT_PER_ACCOUNT_MB: '49' }, 'must not exceed BODIES_IN_FLIGHT_MB'],
  ])('%j stops the start', (environment, problem) => {
    expect(getProblems(environment).join('\n')).toContain(problem)
  })
})

describe('key pool configuration', () => {
  const keyFile = file('pool.key', 'from-file\n')
  const pool = (id: string, fields: object) => ({ id, ...fields })
  const read = (providers: readonly object[], environment: Environment = {}) =>
    readConfig({ GATEWAY_CONFIG: file('pools.json', { providers }), KEY_A: 'a-secret', ...environment })

  test('reads keys of built-in and configured providers from variables and files', () => {
    const keys = [
      { name: 'a', api_key_env: 'KEY_A', rpm: 500, tpm: 200_000, weight: 2, account: 'acme' },
      { name: 'b', api_key_file: keyFile, models: ['gpt-5.5'], account: 'acme' },
      { name: 'c', api_key_file: keyFile, rpm: 10 },
    ]
    const { providers, warnings } = read([pool('openai', { keys })], { OPENAI_API_KEY: 'unused' })
    expect(providers.map(({ id, pool: read }) => [id, read?.keys])).toEqual([
      [
        'openai',
        [
          { name: 'a', apiKey: 'a-secret', weight: 2, account: 'acme', models: null },
          { name: 'b', apiKey: 'from-file', weight: 1, account: 'acme', models: ['openai/gpt-5.5'] },
          { name: 'c', apiKey: 'from-file', weight: 1, account: ':c', models: null },
        ],
      ],
    ])
    expect([...(providers[0]?.pool?.quotas ?? [])]).toEqual([
      ['acme', { requests: 500, tokens: 200_000 }],
      [':c', { requests: 10, tokens: null }],
    ])
    expect(warnings.filter(line => line.startsWith('OPENAI_API_KEY is set and not used'))).toHaveLength(1)
  })

  test('reports all problems of pools and hosts in one list', () => {
    const problems = getProblems({
      GATEWAY_CONFIG: file('bad-pools.json', {
        providers: [
          pool('openai', {
            accounts: [{ name: 'acme', rpm: 5 }],
            keys: [
              { name: 'a', api_key_env: 'NOT_SET' },
              { name: 'a', api_key_file: '/nowhere', account: 'other' },
              { name: 'c', api_key_file: keyFile, account: 'acme', rpm: 6, models: ['no-model'] },
              { name: 'd' },
            ],
          }),
          pool('anthropic', { keys: [] }),
          pool('google', {}),
          provider({ id: 'host', hosts: [{ model: 'openai/no-model' }, { model: 'host/llama' }] }),
          pool('nowhere', { hosts: [{ model: 'openai/gpt-5.5' }] }),
        ],
      }),
    })
    expect(problems.map(line => line.replace('GATEWAY_CONFIG: ', ''))).toEqual([
      'providers.1.keys: must be an array of 1 to 64 items',
      'provider "openai": two keys are named "a"; rename one',
      'provider "openai": key "a" names NOT_SET, which is not set',
      'provider "openai": key "a" names the unknown account "other"; list it in `accounts`',
      'provider "openai": key "a": cannot read /nowhere: there is no such file or folder',
      'provider "openai": key "d" must have either `api_key_env` or `api_key_file`',
      'provider "openai": account "acme" has different figures for `rpm` or `tpm`; state them once',
      'provider "google" is built in and has no `keys`; add them',
      'provider "nowhere" has no `base_url`; add it',
      'provider "host": hosts: "openai/no-model" is no model of the catalog or of a configured provider',
      'provider "host": hosts: "host/llama" is a model of this provider itself; remove it',
      'provider "openai": key "c": no model of this provider is named "no-model"',
    ])
  })
})

describe('single sign-on', () => {
  const valid = {
    OIDC_ISSUER: 'https://login.example.com/realms/company',
    OIDC_CLIENT_ID: 'gateway',
    PUBLIC_URL: 'https://gateway.example.com',
    OIDC_ACCOUNT: 'acc_1',
  }

  test('returns null without an issuer, otherwise every value', () => {
    expect(readConfig({}).singleSignOn).toBeNull()
    const { singleSignOn } = readConfig({ ...valid, OIDC_ROLES: 'cn=staff=member, Leads=ADMIN', OIDC_ONLY: 'true' })
    expect(singleSignOn).toMatchObject({
      redirectUri: 'https://gateway.example.com/api/v1/auth/oidc/callback',
      clientSecret: null,
      scope: 'openid email profile',
      defaultRole: null,
      isOnly: true,
      sessionHours: 24,
    })
    expect([...(singleSignOn?.roles ?? [])]).toEqual([
      ['cn=staff', 'member'],
      ['Leads', 'admin'],
    ])
  })

  test('closes registration, which sets passwords, if it is the only way to sign in', () => {
    const local = { ...valid, PUBLIC_URL: '' }
    expect(readConfig({ ...local, OIDC_ONLY: 'true' }).registration.mode).toBe('closed')
    expect(readConfig(local).registration.mode).toBe('open')
    expect(readConfig({ ...valid, OIDC_ONLY: 'true' }).registration.mode).toBe('closed')
  })

  test.each([
    [{ OIDC_CLIENT_ID: 'gateway' }, 'OIDC_ISSUER: required'],
    [{ OIDC_ONLY: 'true' }, 'OIDC_ISSUER: required'],
    [{ ...valid, OIDC_ISSUER: 'http://login.example.com' }, 'OIDC_ISSUER: must be https'],
    [{ ...valid, OIDC_ISSUER: 'https://login.microsoftonline.com/common/v2.0' }, 'OIDC_ISSUER: must name one tenant'],
    [{ ...valid, OIDC_CLIENT_ID: '' }, 'OIDC_CLIENT_ID: required'],
    [{ ...valid, PUBLIC_URL: '', HOST: '0.0.0.0' }, 'PUBLIC_URL: required with OIDC_ISSUER'],
    [{ ...valid, OIDC_ACCOUNT: '', REGISTRATION: 'open' }, 'OIDC_ACCOUNT: required while registration is open'],
    [{ ...valid, OIDC_ACCOUNT: 'ada@example.com' }, 'OIDC_ACCOUNT: must be the ID'],
    [{ ...valid, OIDC_ROLES: 'staff=boss' }, 'OIDC_ROLES: "staff=boss"'],
    [{ ...valid, OIDC_DEFAULT_ROLE: 'guest' }, 'OIDC_DEFAULT_ROLE: must be one of'],
    [{ ...valid, OIDC_EMAIL: 'trusted' }, 'OIDC_DOMAINS: required with OIDC_EMAIL=trusted'],
    [{ ...valid, OIDC_DOMAINS: '@example.com' }, 'OIDC_DOMAINS: "@example.com"'],
    [{ ...valid, OIDC_SCOPES: 'email' }, 'OIDC_SCOPES: must contain openid'],
    [{ ...valid, OIDC_ONLY: 'true', REGISTRATION: 'open' }, 'OIDC_ONLY: cannot be combined'],
    [{ ...valid, OIDC_SESSION_HOURS: '0' }, 'OIDC_SESSION_HOURS: must be'],
  ])('rejects %j', (environment, problem) => {
    expect(() => readConfig(environment)).toThrow(problem)
  })
})
