/** `usage compare` on both kinds of database, with synthetic exports in the forms of the providers. */
import { afterAll, describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { compareUsage } from '../../src/commands/usage-compare.ts'
import { readExport } from '../../src/commands/usage-exports.ts'
import { csvRows } from '../../src/core/text/csv.ts'
import type { UsageRecord } from '../../src/core/usage/usage-record.ts'
import { describeError } from '../../src/core/validation/operator-errors.ts'
import type { Database } from '../../src/database/database.ts'
import { openJournal } from '../../src/ledger/journal.ts'
import { createShipper } from '../../src/ledger/shipper.ts'
import { quiet } from '../database/database.contract.ts'
import { newTeam } from '../database/ledger-rows.ts'
import { getOnDatabase } from '../database/on-database.ts'
import { temporaryFolder, usageRecord } from '../database/support.ts'
import { testedDatabases } from '../database/tested-databases.ts'
import { freshFolder, run, stopProcesses } from '../harness/processes.ts'

const folder = temporaryFolder()
afterAll(() => folder.remove())
afterAll(stopProcesses)
let journals = 0

async function ship(database: Database, records: readonly UsageRecord[]): Promise<void> {
  const journal = openJournal({ directory: join(folder.path, `own-${++journals}`, 'journal') })
  const shipper = createShipper({ journal, database, clock: { now: () => Date.now() }, log: quiet })
  for (const record of records) journal.append(record)
  expect(await shipper.drain(60_000)).toBe(true)
  await shipper.close()
  await journal.close()
}

type Difference = { day: string; model: string; id: string | null; cause: string; fields: object }
type Found = { lines: number; other_keys: number; unread: number; differences: Difference[] }

async function compare(database: Database, text: string, provider: string, key: string | null = null) {
  const report = await compareUsage(database, text, { providers: [provider], key })
  const found = report.json as Found
  expect(report.isWell).toBe(found.differences.length === 0)
  return { ...found, text: report.lines.join('\n') }
}

const causes = ({ differences }: Found) => differences.map(({ day, model, cause }) => `${day} ${model}: ${cause}`)
const day = (number: number) => `2026-06-${String(number).padStart(2, '0')}`
const noon = (number: number) => Date.parse(`${day(number)}T12:00:00Z`)

for (const [name, open] of testedDatabases()) {
  const onDatabase = getOnDatabase(name, open, 120_000)

  describe(`usage compare on ${name} Postgres`, () => {
    onDatabase('reports the 12 planted differences of an invoice with their causes, and no other', async database => {
      const { accountId, ownerKeys } = await newTeam(database)
      const [keyId = ''] = ownerKeys
      const provider = `p${accountId.slice(-8).toLowerCase()}`
      const records: UsageRecord[] = []
      const add = (at: number, model: string, changes: Partial<UsageRecord> = {}) =>
        records.push(
          usageRecord({
            request_id: `req_${accountId}_${records.length}`,
            account_id: accountId,
            key_id: keyId,
            at_ms: noon(at),
            provider,
            model,
            input_tokens: 1_000,
            cached_input_tokens: 400,
            cache_write_tokens: 100,
            output_tokens: 50,
            billed_microcents: 2_000_000,
            reserved_microcents: 3_000_000,
            ...changes,
          }),
        )
      // Days 1 to 20 with two models and two requests each; what the gateway bought elsewhere is no cost of the provider.
      for (let at = 1; at <= 20; at += 1)
        for (const model of ['gpt-9-sol', 'gpt-9-luna'])
          for (const search of [0, 7]) {
            const isUnpriced = at === 9 && model === 'gpt-9-luna'
            add(at, model, {
              ...(search > 0 && { search_microcents: search, billed_microcents: 2_000_000 + search }),
              ...(isUnpriced && { billed_microcents: 0, search_microcents: 0, unpriced: 'model' }),
              // A price of zero is a known one.
              ...(at === 12 && model === 'gpt-9-luna' && { billed_microcents: 0, search_microcents: 0 }),
              ...(at === 10 && { estimated: true }),
              ...([5, 6].includes(at) &&
                search > 0 && {
                  tried: [
                    [`${provider}/${model}`, 'truncated', 0, 10],
                    [`${provider}/${model}`, 'served', 10, 20],
                  ],
                  attempts: 2,
                }),
            })
          }
      // Calls with own keys are on the bill of the account, and a fallback is on the operator's.
      add(6, 'gpt-9-sol', { billed_microcents: 0, own_key_microcents: 2_000_000 })
      add(6, 'gpt-9-image', { billed_microcents: 9, search_microcents: 9, own_key_microcents: 2_000_000 })
      // A request without usage, and one without a model.
      add(3, 'gpt-9-sol', {
        input_tokens: 0,
        cached_input_tokens: 0,
        cache_write_tokens: 0,
        output_tokens: 0,
        billed_microcents: 0,
      })
      await ship(database, records)

      const planted: Record<string, Partial<Record<string, number | string | null>>> = {
        [`${day(2)} gpt-9-sol`]: { cached: 800 + 128 },
        [`${day(4)} gpt-9-luna`]: { written: 0, cost: 0.036 },
        [`${day(5)} gpt-9-sol`]: { requests: 3, input: 3_000, output: 60, cost: 0.05 },
        [`${day(7)} gpt-9-sol`]: { requests: 5, input: 9_000, output: 900, cached: 2_000, cost: 0.2 },
        [`${day(8)} gpt-9-luna`]: { cost: 0.02, tier: 'flex' },
        [`${day(9)} gpt-9-luna`]: { cost: 0.04 },
        [`${day(10)} gpt-9-sol`]: { input: 2_040, output: 97 },
        [`${day(11)} gpt-9-sol`]: { cost: 0.044 },
        [`${day(12)} gpt-9-luna`]: { cost: 0.4 },
        [`${day(13)} gpt-9-luna`]: { requests: 1, input: 1_000, cached: 400, written: 100, output: 50, cost: 0.02 },
      }
      const lines = [
        'start_time,model,api_key_id,service_tier,num_model_requests,input_tokens,input_cached_tokens,input_cache_write_tokens,output_tokens,cost_usd',
      ]
      for (let at = 1; at <= 20; at += 1)
        for (const model of ['gpt-9-sol', 'gpt-9-luna']) {
          // Missing in the export.
          if (at === 14 && model === 'gpt-9-luna') continue
          const usual = {
            requests: 2,
            input: 2_000,
            cached: 800,
            written: 200,
            output: 100,
            cost: 0.04,
            tier: 'default',
          }
          const { requests, input, cached, written, output, tier } = { ...usual, ...planted[`${day(at)} ${model}`] }
          lines.push(
            [noon(at) / 1_000, `${model}-2026-05-01`, 'key_a', tier, requests, input, cached, written, output].join(
              ',',
            ),
          )
        }
      // A model that the gateway never called, and another key of the organization.
      lines.push([noon(15) / 1_000, 'gpt-9-image', 'key_a', '', 3, 30, 0, 0, 3].join(','))
      lines.push([noon(15) / 1_000, 'gpt-9-sol', 'key_b', '', 3, 30, 0, 0, 3].join(','))
      const usage = await compare(
        database,
        lines.map(line => line.replace(/,cost_usd$/, '')).join('\r\n'),
        provider,
        'key_a',
      )
      expect(causes(usage).sort()).toEqual(
        [
          `${day(10)} gpt-9-sol: estimated tokens`,
          `${day(13)} gpt-9-luna: not in the export`,
          `${day(15)} gpt-9-image: request outside the gateway`,
          `${day(2)} gpt-9-sol: cached tokens`,
          `${day(4)} gpt-9-luna: cached tokens`,
          `${day(5)} gpt-9-sol: retried request`,
          `${day(7)} gpt-9-sol: request outside the gateway`,
        ].sort(),
      )
      expect(usage).toMatchObject({ lines: 40, other_keys: 1, unread: 0 })
      expect(usage.text).toContain('cached 928 / 800')

      // The invoice: one export with tokens and cost, as OpenRouter's page has them.
      const invoice = ['Date,Slug,Usage,BYOK Usage,Requests,Prompt Tokens,Completion Tokens,Reasoning Tokens']
      for (let at = 1; at <= 20; at += 1)
        for (const model of ['gpt-9-sol', 'gpt-9-luna']) {
          if (at === 14 && model === 'gpt-9-luna') continue
          const usual = { requests: 2, input: 2_000, output: 100, cost: 0.04 }
          const { requests, input, output, cost } = { ...usual, ...planted[`${day(at)} ${model}`] }
          invoice.push(`${day(at)},openai/${model},${Number(cost).toFixed(8)},0,${requests},${input},${output},0`)
        }
      invoice.push(`${day(15)},openai/gpt-9-image,0.10000000,0,3,30,3,0`)
      // Rounded to the tenth of a cent.
      invoice[invoice.length - 2] = `${day(20)},openai/gpt-9-luna,0.04040000,0,2,2000,100,0`
      const found = await compare(database, invoice.join('\n'), provider)
      expect(causes(found)).toEqual([
        `${day(4)} gpt-9-luna: cached tokens`,
        `${day(5)} gpt-9-sol: retried request`,
        `${day(7)} gpt-9-sol: request outside the gateway`,
        `${day(8)} gpt-9-luna: tier`,
        `${day(9)} gpt-9-luna: unknown price`,
        `${day(10)} gpt-9-sol: estimated tokens`,
        `${day(11)} gpt-9-sol: tier`,
        `${day(12)} gpt-9-luna: other price`,
        `${day(13)} gpt-9-luna: not in the export`,
        `${day(14)} gpt-9-luna: not in the export`,
        `${day(15)} openai/gpt-9-image: request outside the gateway`,
        `${day(20)} gpt-9-luna: rounding`,
      ])
    })

    onDatabase('joins by the ID of the provider when the export has one', async database => {
      const { accountId, ownerKeys } = await newTeam(database)
      const provider = `q${accountId.slice(-8).toLowerCase()}`
      const ids = ['same', 'dearer', 'lost'].map(id => `gen-${accountId}-${id}`)
      await ship(
        database,
        ids.map((id, index) =>
          usageRecord({
            request_id: `req_${id}`,
            upstream_id: id,
            account_id: accountId,
            key_id: ownerKeys[0] ?? '',
            at_ms: noon(2),
            provider,
            model: 'kimi-k3',
            input_tokens: 100,
            output_tokens: 10 + index,
            billed_microcents: 1_000_000,
            reserved_microcents: 1_000_000,
          }),
        ),
      )
      const row = (id: string, cost: string, output: number) =>
        `${id},${day(2)} 12:00:00.5,${cost},100,${output},moonshotai/kimi-k3,standard`
      const text = [
        'generation_id,created_at,cost_total,tokens_prompt,tokens_completion,model_permaslug,variant',
        row(ids[0] ?? '', '0.01', 10),
        row(ids[1] ?? '', '0.03', 11),
        row('gen-elsewhere', '0.01', 10),
      ].join('\n')
      const { differences } = await compare(database, text, provider)
      expect(differences.map(({ id, cause }) => [id, cause])).toEqual([
        [ids[1] ?? '', 'other price'],
        ['gen-elsewhere', 'request outside the gateway'],
        [null, 'not in the export'],
      ])
    })

    onDatabase('finds the longest model of the ledger in a text when the export has no ID of it', async database => {
      const { accountId, ownerKeys } = await newTeam(database)
      const provider = `r${accountId.slice(-8).toLowerCase()}`
      const models = [
        'gemini-3.1-pro-preview',
        'gemini-3.1-flash',
        'gemini-3.1-flash-lite',
        'eu.anthropic.claude-opus-5-5-20260922-v1:0',
      ]
      await ship(
        database,
        models.map(model =>
          usageRecord({
            request_id: `req_${accountId}_${model}`,
            account_id: accountId,
            key_id: ownerKeys[0] ?? '',
            at_ms: noon(2),
            provider,
            model,
            billed_microcents: 1_000_000,
            reserved_microcents: 1_000_000,
          }),
        ),
      )
      const google = (sku: string, cost: string) => `Gemini API,${sku},Usage,${day(2)},${cost}`
      const text = [
        'Service description,SKU description,Cost type,Usage start date,Cost ($)',
        google('Generate content input token count gemini 3.1 pro short input text', '0.0040'),
        google('Generate content output token count gemini 3.1 pro short output text', '0.0060'),
        google('Generate content output token count Gemini 3.1 Flash Lite output text', '0.0100'),
        google('Generate content output token count Gemini 3.1 Flash output text', '0.0300'),
      ].join('\n')
      const head =
        'lineItem/LineItemType,lineItem/UsageStartDate,lineItem/ProductCode,lineItem/UsageType,lineItem/UnblendedCost'
      const aws = `${head}\nUsage,${day(2)}T03:00:00Z,AmazonBedrock,USE1-ClaudeOpus5.5-input-tokens,0.0100`
      expect(causes(await compare(database, text, provider)).sort()).toEqual([
        `${day(2)} eu.anthropic.claude-opus-5-5-20260922-v1:0: not in the export`,
        `${day(2)} gemini-3.1-flash: other price`,
      ])
      const missing = models.slice(0, 3).map(model => `${day(2)} ${model}: not in the export`)
      expect(causes(await compare(database, aws, provider)).sort()).toEqual(missing.sort())
    })
  })
}

describe('readExport', () => {
  const bucket = { object: 'bucket', start_time: noon(1) / 1_000, end_time: noon(2) / 1_000 }
  const anthropic = {
    uncached_input_tokens: 100,
    cache_read_input_tokens: 20,
    cache_creation: { ephemeral_5m_input_tokens: 3, ephemeral_1h_input_tokens: 4 },
    output_tokens: 5,
    server_tool_use: { web_search_requests: 1 },
    model: 'claude-opus-5-5',
    service_tier: 'batch',
  }
  const line = {
    id: null,
    tier: null,
    requests: null,
    input: null,
    cached: null,
    written: null,
    output: null,
    cost: null,
  }
  const header = (names: string, ...rows: string[]) => [names, ...rows].join('\n')

  test.each([
    [
      'OpenAI usage',
      JSON.stringify({
        object: 'page',
        data: [
          {
            ...bucket,
            results: [
              {
                object: 'organization.usage.completions.result',
                input_tokens: 9,
                input_cached_tokens: 4,
                output_tokens: 2,
                num_model_requests: 3,
                model: 'gpt-6-sol',
                batch: true,
                service_tier: null,
              },
            ],
          },
        ],
      }),
      { day: day(1), model: 'gpt-6-sol', tier: 'batch', requests: 3, input: 9, cached: 4, output: 2 },
    ],
    [
      'OpenAI costs',
      JSON.stringify({
        data: [{ ...bucket, results: [{ amount: { value: 0.06, currency: 'usd' }, line_item: 'gpt-6-sol, input' }] }],
      }),
      { day: day(1), model: 'gpt-6-sol, input', cost: 6_000_000 },
    ],
    [
      'Anthropic usage API',
      JSON.stringify({ data: [{ starting_at: `${day(1)}T00:00:00Z`, results: [anthropic] }] }),
      { day: day(1), model: 'claude-opus-5-5', tier: 'batch', input: 127, cached: 20, written: 7, output: 5 },
    ],
    [
      'Anthropic cost API',
      JSON.stringify({
        data: [
          {
            starting_at: `${day(1)}T00:00:00Z`,
            results: [
              {
                amount: '123.45',
                currency: 'USD',
                cost_type: 'tokens',
                model: 'claude-opus-5-5',
                service_tier: 'standard',
              },
              { amount: '1.00', currency: 'USD', cost_type: 'web_search', model: null },
            ],
          },
        ],
      }),
      { day: day(1), model: 'claude-opus-5-5', cost: 123_450_000 },
    ],
    [
      'Anthropic Console usage',
      header(
        'usage_date_utc,model_version,api_key,workspace,usage_type,context_window,usage_input_tokens_no_cache,usage_input_tokens_cache_write_5m,usage_input_tokens_cache_write_1h,usage_input_tokens_cache_read,usage_output_tokens,web_search_count',
        `${day(1)},claude-opus-5-5,App,Default,standard,≤ 200k,100,3,4,20,5,0`,
      ),
      { day: day(1), model: 'claude-opus-5-5', input: 127, cached: 20, written: 7, output: 5 },
    ],
    [
      'Anthropic Console cost',
      header(
        'usage_date_utc,model,workspace,api_key,token_type,cost_usd,cost_type',
        `${day(1)},Claude Opus 5.5,Default,App,output,1.25,token`,
      ),
      { day: day(1), model: 'Claude Opus 5.5', cost: 125_000_000 },
    ],
    [
      'Google Cloud billing',
      header(
        'Invoice number,123',
        '',
        'Service description,SKU description,Cost type,Usage start date,Usage amount,Usage unit,Unrounded Cost ($),Cost ($)',
        `Gemini API,"Gemini 4 Argon, input",Usage,${day(1)},"1,000",count,"1,000.0123",1000.01`,
        `Gemini API,Tax,Tax,${day(1)},1,count,0.5,0.5`,
        `Compute Engine,Core,Usage,${day(1)},1,count,0.5,0.5`,
      ),
      { day: day(1), model: 'Gemini 4 Argon, input', cost: 100_001_230_000 },
    ],
    [
      'AWS Cost and Usage Report',
      header(
        'lineItem/LineItemType,lineItem/UsageStartDate,lineItem/ProductCode,lineItem/UsageType,lineItem/UsageAmount,lineItem/UnblendedCost',
        `Usage,${day(1)}T00:00:00Z,AmazonBedrock,USE1-ClaudeOpus5.5-input-tokens,12.5,0.05`,
        `Tax,${day(1)}T00:00:00Z,AmazonBedrock,,1,0.01`,
        `Usage,${day(1)}T00:00:00Z,AmazonEC2,BoxUsage,1,0.01`,
      ),
      { day: day(1), model: 'USE1-ClaudeOpus5.5-input-tokens', cost: 5_000_000 },
    ],
    [
      'OpenRouter activity',
      JSON.stringify({
        data: [
          {
            date: day(1),
            model: 'openai/gpt-4.1',
            usage: 0.015,
            requests: 5,
            prompt_tokens: 50,
            completion_tokens: 125,
            reasoning_tokens: 25,
          },
        ],
      }),
      { day: day(1), model: 'openai/gpt-4.1', requests: 5, input: 50, output: 125, cost: 1_500_000 },
    ],
  ])('reads one line of usage when the export is of %s', (name, text, wanted) => {
    const { format, lines, unread } = readExport(`\uFEFF${text}`, null)
    expect(format.name).toBe(name)
    expect(unread).toBe(0)
    expect(lines.map(found => ({ ...found, cost: found.cost === null ? null : Math.round(found.cost) }))).toEqual([
      { ...line, ...wanted },
    ])
  })

  const activity = 'date,usage,requests,prompt_tokens,completion_tokens,slug'
  const activityRow = `${day(1)},0.01,1,10,5,openai/gpt-4.1`
  test.each<[what: string, text: string, key: string | null, reason: string]>([
    ['no form fits', 'a,b\n1,2', null, 'no line in a known form (JSON, or CSV with commas): OpenAI usage, '],
    ['it is empty', '', null, 'no line in a known form'],
    ['it is a byte order mark', '\uFEFF', null, 'no line in a known form'],
    ['it has only a head', activity, null, 'no line in a known form'],
    ['the API found nothing', '{"object":"page","data":[],"has_more":false}', null, 'no line in a known form'],
    ['it has semicolons', `${activity}\n${activityRow}`.replaceAll(',', ';'), null, 'no line in a known form'],
    ['it is of another program', '\u0000\u0001PAR1', null, 'no line in a known form'],
    ['it is no JSON', '{"data":', null, 'no valid JSON'],
    ['no day of it exists', `${activity}\n2026-02-31,1,1,1,1,a\n0000-01-01,1,1,1,1,a`, null, 'no line of usage.'],
    ['nothing was used', `${activity}\n${day(1)},0,0,0,0,a`, null, 'no line of usage.'],
    ['no line is of the key', `${activity}\n${activityRow}`, 'key_x', 'no line of usage of the key key_x.'],
  ])('rejects a file in one sentence when %s', (_, text, key, reason) => {
    let message = ''
    try {
      readExport(text, key)
    } catch (cause) {
      message = describeError(cause)
    }
    expect(message).toContain(reason)
    expect(message.split('\n')).toHaveLength(1)
  })

  test('counts the lines that it cannot read: torn, with an unquoted comma, without a model', () => {
    const others = ['2026-06-01,0.01', `${activityRow},x`, `${day(1)},0.01,1,10,5,`, '']
    const { lines, unread } = readExport([activity, activityRow, ...others, activityRow].join('\n'), null)
    expect([lines.length, unread]).toEqual([2, 3])
  })

  test('reads every line when there are 200,000', () => {
    const { lines, precision } = readExport(`${activity}\r\n${`${activityRow}\r\n`.repeat(200_000)}`, null)
    expect([lines.length, lines.at(-1)?.input, precision]).toEqual([200_000, 10, 500_000])
  })
})

describe('usage compare as a command', () => {
  const text = `date,usage,requests,prompt_tokens,completion_tokens,slug\r\n${day(1)},0.01,1,10,5,openai/gpt-4.1\r\n`
  const zipped = gzipSync(`\uFEFF${text}`)
  test.each<[what: string, content: string | Uint8Array | null, code: number, stdout: string, stderr: string]>([
    ['compares with the embedded database', text, 1, 'request outside the gateway', 'Check failed; see above.\n'],
    ['reads gzip', zipped, 1, 'OpenRouter activity, 2026-06-01 to 2026-06-01: 1 lines', 'Check failed'],
    ['rejects a part of a gzip file', zipped.subarray(0, 30), 1, '', ' is no whole gzip file.\n'],
    ['rejects a file that is not there', null, 1, '', 'there is no such file or folder.\n'],
    ['rejects another file', 'hello', 1, '', 'no line in a known form'],
  ])(
    '%s',
    async (_, content, code, stdout, stderr) => {
      const file = join(folder.path, `export-${Bun.randomUUIDv7()}`)
      if (content !== null) await Bun.write(file, content)
      const found = await run('cli.ts', ['usage', 'compare', file], { GATEWAY_DATA_DIR: await freshFolder() })
      expect(found.code).toBe(code)
      expect(found.stdout).toContain(stdout)
      expect(found.stderr).toContain(stderr)
      expect(found.stderr.trim().split('\n')).toHaveLength(1)
    },
    120_000,
  )
})

test('csvRows: reads quoted separators, quotes and line breaks, with any line end', () => {
  expect(csvRows('a,"b,""c""\nd",\r\n\r\ne,f g,"h"')).toEqual([
    ['a', 'b,"c"\nd', ''],
    ['e', 'f g', 'h'],
  ])
})
