/**
 * The model catalog as data. Facts and figures come from public sources, each named by its key in `sources`; null = no
 * public figure exists. The project decides only the choice of models, the tiers, the successors, and the stand-ins
 * below. Where scores of Artificial Analysis are displayed, the license requires the credit in `attributions`.
 */

import {
  blendedPrice,
  type Evidence,
  type MeasuredSpeed,
  type Model,
  type ParameterRules,
  type QualityScore,
  type RoutingFigures,
} from '../core/models/models.ts'
import { type Prices, type Pricing, priceVariant, type Rates } from '../core/models/pricing.ts'

/** The date (UTC) of this catalog's data. */
export const catalogueDate = '2026-11-20'

/** Names of the sources by key. */
export const sources = {
  pi: {
    what: '@earendil-works/pi-ai 1.5.2 (npm), dist/providers/data/{openai,anthropic,google}.json: first-party price, context and output-limit listing',
    date: '2026-11-10 (its manifest generatedAt 2026-11-10T12:05:37Z)',
  },
  'pi-market': {
    what: 'same package, data/{openrouter,vercel-ai-gateway,opencode}.json: three marketplace listings of the same models, used as cross-check',
    date: '2026-11-10',
  },
  cline: {
    what: '@cline/llms 0.0.86 (npm), generated catalog (models.dev-derived): release date, max input tokens, capabilities',
    date: '2026-09-27',
  },
  'models.dev': {
    what: 'anomalyco/models.dev repository, providers/*/models/*.toml, commit f3fc692299671838c7c65fd8126bf84d81a2e817 (MIT)',
    date: '2026-07-02',
  },
  'openai-sdk': {
    what: 'openai 7.55.0 (npm, Apache-2.0): ChatModel type and its deprecation notes; CHANGELOG.md dates at which model ids were added',
    date: '2026-11',
  },
  'anthropic-sdk': {
    what: '@anthropic-ai/sdk 1.11.0 (npm, MIT): Model type, DEPRECATED_MODELS table, CHANGELOG.md dates',
    date: '2026-11-19',
  },
  'genai-sdk': { what: '@google/genai 3.1.0 (npm, Apache-2.0): model id list', date: '2026-11' },
  'ai-sdk': {
    what: '@ai-sdk/openai 4.0.118, @ai-sdk/anthropic 4.0.105, @ai-sdk/google 4.0.121 (npm, Apache-2.0): per-model capability catalogs; changelog + npm publish times',
    date: '2026-11-13',
  },
  'gemini-dep': {
    what: 'Gemini API deprecations page as quoted by dev.to/aideprecations (read 2026-11-10); same facts in docs.laozhang.ai notice 2026-11-12 and docs.retellai.com',
    date: '2026-11-10',
  },
  aa: {
    what: 'Artificial Analysis API v2 (data/llms/models) snapshot kept in nathanramoscfa/roadmodel docs/benchmarks.json, commit 35ccd4d985f5450c69637d788c53c7c0e13579d2. Attribution required: data (c) Artificial Analysis',
    date: '2026-09-23',
  },
  'aa-prev': { what: 'same file, commit 0053764a3d4eb07b8bb1f9c5cb4b5cc60be39ff6', date: '2026-09-21' },
  livebench: {
    what: 'LiveBench/livebench.github.io public/table_2026_01_08.csv, commit 4bf96c8d9dc9b06c17d82dc76a54429975c2b2c2; value = mean of the 7 category means (computed here from the table)',
    date: '2026-07-01',
  },
  arena: {
    what: 'Arena text leaderboard (arena.ai) snapshot in oolong-tea-2026/arena-ai-leaderboards data/2026-04-19/text.json, commit a2694df6580d2d4d61df7d1d23fd5cb83b13a143 (MIT)',
    date: '2026-04-19',
  },
  'llm-prices': {
    what: 'simonw/llm-prices data/*.json commit 723ef0bd3a6254436e9fe8d7f05d4d787e99f4c5',
    date: '2026-08-05',
  },
} as const satisfies Readonly<Record<string, { readonly what: string; readonly date: string }>>

type Source = keyof typeof sources

/** Credits to display beside a score, by metric. The first is a condition of that source's license. */
export const attributions: Readonly<Record<QualityScore['metric'], string>> = {
  artificial_analysis_intelligence_index: 'Artificial Analysis, https://artificialanalysis.ai',
  livebench_global_average: 'LiveBench, https://livebench.ai',
  arena_text_score: 'Arena, https://arena.ai',
}

/**
 * All models accept images, and PDFs as text and page images: OpenAI "File inputs", Anthropic "PDF support", Gemini
 * "Document understanding".
 */
const everything = {
  vision: true,
  imageUrls: true,
  files: true,
  tools: true,
  jsonSchema: true,
  reasoning: true,
  streaming: true,
  webSearch: true,
}

const openaiPlain: ParameterRules = {
  sampling: 'accepted',
  maximumTemperature: 2,
  temperatureWithTopP: true,
  penalties: true,
  seed: true,
  logitBias: true,
  logprobs: true,
  maximumTopLogprobs: 20,
  maximumStops: 4,
  maximumChoices: 128,
  outputCapField: 'max_completion_tokens',
  systemRole: 'system',
  forcedToolChoice: 'accepted',
  toolsNeedEffortNone: false,
  prefill: true,
  efforts: [],
  reasoning: { kind: 'none' },
  streamOptions: true,
  parallelToolCalls: true,
  responseFormat: 'json_schema',
  passExtras: false,
}

const openaiReasoning: ParameterRules = {
  ...openaiPlain,
  sampling: 'only_with_effort_none',
  penalties: false,
  logitBias: false,
  maximumTopLogprobs: 0,
  systemRole: 'developer',
  reasoning: { kind: 'effort' },
}

const anthropicAdaptive: ParameterRules = {
  sampling: 'rejected',
  maximumTemperature: 1,
  temperatureWithTopP: false,
  penalties: false,
  seed: false,
  logitBias: false,
  logprobs: false,
  maximumTopLogprobs: 0,
  // More than OpenAI's four. No limit is published, and clients of the gateway cannot send more than this.
  maximumStops: 64,
  maximumChoices: 1,
  outputCapField: 'max_tokens',
  systemRole: 'system',
  forcedToolChoice: 'rejected_when_thinking',
  toolsNeedEffortNone: false,
  prefill: false,
  efforts: ['low', 'medium', 'high', 'xhigh', 'max'],
  reasoning: { kind: 'adaptive', off: 'disabled' },
  streamOptions: false,
  parallelToolCalls: true,
  responseFormat: 'json_schema',
  passExtras: false,
}

const anthropicBudget: ParameterRules = {
  ...anthropicAdaptive,
  sampling: 'accepted_when_thinking_disabled',
  prefill: true,
  efforts: [],
  reasoning: { kind: 'budget', minimum: 1_024, maximum: 63_999, canDisable: true },
}

const googleLevel: ParameterRules = {
  ...anthropicAdaptive,
  sampling: 'accepted',
  maximumTemperature: 2,
  temperatureWithTopP: true,
  penalties: true,
  seed: true,
  maximumStops: 5,
  maximumChoices: 8,
  forcedToolChoice: 'accepted',
  prefill: true,
  efforts: ['low', 'medium', 'high'],
  reasoning: { kind: 'level' },
  // These models may always call several tools in parallel.
  parallelToolCalls: false,
}

const googleBudget: ParameterRules = {
  ...googleLevel,
  penalties: false,
  efforts: [],
  reasoning: { kind: 'token_budget', minimum: 0, maximum: 24_576, canDisable: true },
}

type CatalogueRow = Omit<Model, 'figures' | 'evidence'> & { readonly evidence: Evidence }

const common = {
  pricingSource: 'pi',
  capabilities: everything,
  aliases: [],
  deprecated: false,
  deprecationDate: null,
  successor: null,
  qualityScores: [],
}
const evidence = { deprecationSource: null, notes: null, speed: null, nearestRelative: null }
const openai = {
  ...common,
  provider: 'openai',
  evidence: {
    ...evidence,
    notes:
      'provider-side web search exists on the Responses API tool only; Chat Completions answers 400 to web_search_options on non-search models',
  },
}
const anthropic = { ...common, provider: 'anthropic', evidence }
const google = { ...common, provider: 'google', evidence }

const rows: readonly CatalogueRow[] = [
  {
    ...openai,
    id: 'gpt-6-astra',
    displayName: 'GPT-6 Astra',
    tier: 'premium',
    pricing: { ...prices(10, 50, 1, 12.5), longContext: { aboveInputTokens: 272_000, ...prices(20, 75, 2, 25) } },
    contextWindow: 1_050_000,
    maxInputTokens: 922_000,
    maxOutputTokens: 128_000,
    parameters: {
      ...openaiReasoning,
      sampling: 'rejected',
      logprobs: false,
      efforts: ['low', 'medium', 'high', 'xhigh', 'max'],
    },
    marketplaceAliases: ['openai/gpt-6-astra'],
    releaseDate: '2026-09-04',
    evidence: {
      ...openai.evidence,
      limitsSource: 'pi-market',
      releaseDateBasis: 'cline (models.dev release_date); SDK changelog 2026-09-03',
    },
  },
  {
    ...openai,
    id: 'gpt-6.1-sol',
    displayName: 'GPT-6.1 Sol',
    tier: 'standard',
    pricing: { ...prices(2, 10, 0.1, 2.5), longContext: { aboveInputTokens: 272_000, ...prices(4, 15, 0.2, 5) } },
    contextWindow: 1_050_000,
    maxInputTokens: null,
    maxOutputTokens: 128_000,
    parameters: {
      ...openaiReasoning,
      sampling: 'rejected',
      logprobs: false,
      efforts: ['low', 'medium', 'high', 'xhigh', 'max'],
    },
    marketplaceAliases: ['openai/gpt-6.1-sol'],
    releaseDate: '2026-09-29',
    evidence: {
      ...openai.evidence,
      limitsSource: 'pi-market',
      releaseDateBasis: firstListed('openai 7.24.0'),
      nearestRelative: {
        id: 'gpt-5.6-sol',
        ...intelligenceIndex(47.0, 'max', 'aa-prev'),
        speed: measured(73.619, 70.59, 'max', 'aa-prev'),
      },
    },
  },
  {
    ...openai,
    id: 'gpt-6.1-terra',
    displayName: 'GPT-6.1 Terra',
    tier: 'standard',
    pricing: { ...prices(1, 5, 0.05, 1.25), longContext: { aboveInputTokens: 272_000, ...prices(2, 7.5, 0.1, 2.5) } },
    contextWindow: 1_050_000,
    maxInputTokens: null,
    maxOutputTokens: 128_000,
    parameters: { ...openaiReasoning, efforts: ['none', 'low', 'medium', 'high', 'xhigh', 'max'] },
    marketplaceAliases: ['openai/gpt-6.1-terra'],
    releaseDate: '2026-10-26',
    evidence: {
      ...openai.evidence,
      limitsSource: 'pi-market',
      releaseDateBasis: firstListed('openai 7.45.0'),
      nearestRelative: {
        id: 'gpt-5.6-terra',
        ...intelligenceIndex(42.1, 'max', 'aa-prev'),
        speed: measured(108.271, 169.783, 'max', 'aa-prev'),
      },
    },
  },
  {
    ...openai,
    id: 'gpt-6-luna',
    displayName: 'GPT-6 Luna',
    tier: 'economy',
    pricing: {
      ...prices(0.1, 0.5, 0.01, 0.125),
      longContext: { aboveInputTokens: 272_000, ...prices(0.2, 0.75, 0.02, 0.25) },
    },
    contextWindow: 1_050_000,
    maxInputTokens: 922_000,
    maxOutputTokens: 128_000,
    parameters: { ...openaiReasoning, efforts: ['none', 'low', 'medium', 'high', 'xhigh', 'max'] },
    marketplaceAliases: ['openai/gpt-6-luna'],
    releaseDate: '2026-09-22',
    evidence: {
      ...openai.evidence,
      limitsSource: 'pi-market',
      releaseDateBasis: 'cline (models.dev release_date)',
      nearestRelative: {
        id: 'gpt-5.6-luna',
        ...intelligenceIndex(37.3, 'max', 'aa-prev'),
        speed: measured(155.77, 83.997, 'max', 'aa-prev'),
      },
    },
  },
  {
    ...openai,
    id: 'gpt-5.5',
    displayName: 'GPT-5.5',
    tier: 'premium',
    pricing: { ...prices(5, 30, 0.5, null), longContext: { aboveInputTokens: 272_000, ...prices(10, 45, 1, null) } },
    contextWindow: 1_050_000,
    maxInputTokens: 922_000,
    maxOutputTokens: 128_000,
    parameters: { ...openaiReasoning, efforts: ['none', 'low', 'medium', 'high', 'xhigh'] },
    aliases: ['gpt-5.5-2026-04-23'],
    marketplaceAliases: ['openai/gpt-5.5'],
    releaseDate: '2026-04-23',
    qualityScores: [intelligenceIndex(38.4, 'xhigh', 'aa-prev'), liveBench(80.71, 'xhigh'), liveBench(76.24, 'high')],
    evidence: { ...openai.evidence, limitsSource: 'pi-market', releaseDateBasis: 'models.dev' },
  },
  {
    ...openai,
    id: 'gpt-5.4-mini',
    displayName: 'GPT-5.4 mini',
    tier: 'economy',
    pricing: { ...prices(0.75, 4.5, 0.075, null), longContext: null },
    contextWindow: 400_000,
    maxInputTokens: 272_000,
    maxOutputTokens: 128_000,
    parameters: { ...openaiReasoning, efforts: ['none', 'low', 'medium', 'high', 'xhigh'] },
    aliases: ['gpt-5.4-mini-2026-03-17'],
    marketplaceAliases: ['openai/gpt-5.4-mini'],
    releaseDate: '2026-03-17',
    qualityScores: [
      intelligenceIndex(24.1, 'xhigh', 'aa-prev'),
      liveBench(67.54, 'xhigh'),
      liveBench(36.95, 'no effort suffix'),
      arena(1458, 'high (+-7, 9135 votes)'),
    ],
    evidence: { ...openai.evidence, limitsSource: 'pi-market', releaseDateBasis: 'models.dev' },
  },
  {
    ...openai,
    id: 'gpt-5.4-nano',
    displayName: 'GPT-5.4 nano',
    tier: 'economy',
    pricing: { ...prices(0.2, 1.25, 0.02, null), longContext: null },
    contextWindow: 400_000,
    maxInputTokens: 272_000,
    maxOutputTokens: 128_000,
    parameters: { ...openaiReasoning, efforts: ['none', 'low', 'medium', 'high', 'xhigh'] },
    aliases: ['gpt-5.4-nano-2026-03-17'],
    marketplaceAliases: ['openai/gpt-5.4-nano'],
    deprecated: true,
    deprecationDate: '2027-04-01',
    successor: 'openai/gpt-6-luna',
    releaseDate: '2026-03-17',
    qualityScores: [
      intelligenceIndex(20.7, 'xhigh', 'aa-prev'),
      liveBench(70.13, 'xhigh'),
      liveBench(32.39, 'no effort suffix'),
    ],
    evidence: {
      ...openai.evidence,
      limitsSource: 'pi-market',
      releaseDateBasis: 'cline (models.dev release_date)',
      deprecationSource: 'openai-sdk',
    },
  },
  {
    ...openai,
    id: 'gpt-4.1',
    displayName: 'GPT-4.1',
    tier: 'standard',
    pricing: { ...prices(2, 8, 0.5, null), longContext: null },
    contextWindow: 1_047_576,
    maxInputTokens: 1_047_576,
    maxOutputTokens: 32_768,
    capabilities: { ...everything, reasoning: false },
    parameters: openaiPlain,
    aliases: ['gpt-4.1-2025-04-14'],
    marketplaceAliases: ['openai/gpt-4.1'],
    deprecated: true,
    deprecationDate: '2027-01-14',
    // The newer model of its tier that can still answer without reasoning, and then accepts a temperature.
    successor: 'openai/gpt-6.1-terra',
    releaseDate: '2025-04-14',
    evidence: {
      ...openai.evidence,
      limitsSource: 'pi-market',
      releaseDateBasis: 'cline (models.dev release_date)',
      deprecationSource: 'openai-sdk',
    },
  },
  {
    ...anthropic,
    id: 'claude-fable-5-2',
    displayName: 'Claude Fable 5.2',
    tier: 'premium',
    pricing: { ...prices(8, 40, 0.2, 10), longContext: null },
    contextWindow: 1_000_000,
    maxInputTokens: null,
    maxOutputTokens: 128_000,
    parameters: {
      ...anthropicAdaptive,
      forcedToolChoice: 'rejected',
      reasoning: { kind: 'adaptive', off: 'lowest_effort' },
    },
    marketplaceAliases: ['anthropic/claude-fable-5.2'],
    releaseDate: '2026-11-09',
    evidence: {
      ...anthropic.evidence,
      limitsSource: 'pi-market',
      releaseDateBasis: firstListed('@anthropic-ai/sdk 1.7.0'),
      notes: 'forced tool_choice (any/tool) rejected with 400',
      nearestRelative: {
        id: 'claude-fable-5-1',
        ...intelligenceIndex(53.4, 'max effort, default fallback', 'aa'),
        speed: measured(63.135, 113.57, 'max effort', 'aa'),
      },
    },
  },
  {
    ...anthropic,
    id: 'claude-opus-5-5',
    displayName: 'Claude Opus 5.5',
    tier: 'premium',
    pricing: { ...prices(4, 20, 0.2, 5), longContext: null },
    contextWindow: 1_000_000,
    maxInputTokens: null,
    maxOutputTokens: 128_000,
    parameters: {
      ...anthropicAdaptive,
      forcedToolChoice: 'rejected',
      reasoning: { kind: 'adaptive', off: 'lowest_effort' },
    },
    marketplaceAliases: ['anthropic/claude-opus-5.5'],
    releaseDate: '2026-09-22',
    qualityScores: [intelligenceIndex(57.6, 'adaptive, max effort, default fallback', 'aa')],
    evidence: {
      ...anthropic.evidence,
      limitsSource: 'pi-market',
      releaseDateBasis: 'cline (models.dev release_date); SDK changelog same day',
      notes: 'forced tool_choice (any/tool) rejected with 400',
    },
  },
  {
    ...anthropic,
    id: 'claude-opus-4-8',
    displayName: 'Claude Opus 4.8',
    tier: 'premium',
    pricing: { ...prices(5, 25, 0.5, 6.25), longContext: null },
    contextWindow: 1_000_000,
    maxInputTokens: null,
    maxOutputTokens: 128_000,
    parameters: anthropicAdaptive,
    marketplaceAliases: ['anthropic/claude-opus-4.8'],
    releaseDate: '2026-05-28',
    qualityScores: [liveBench(78.79, 'xhigh effort'), liveBench(77.16, 'high effort')],
    evidence: { ...anthropic.evidence, limitsSource: 'pi-market', releaseDateBasis: 'models.dev' },
  },
  {
    ...anthropic,
    id: 'claude-sonnet-5-5',
    displayName: 'Claude Sonnet 5.5',
    tier: 'standard',
    pricing: { ...prices(2, 10, 0.1, 2.5), longContext: null },
    contextWindow: 1_000_000,
    maxInputTokens: null,
    maxOutputTokens: 128_000,
    parameters: {
      ...anthropicAdaptive,
      forcedToolChoice: 'rejected',
      reasoning: { kind: 'adaptive', off: 'between_tools' },
    },
    marketplaceAliases: ['anthropic/claude-sonnet-5.5'],
    releaseDate: '2026-09-28',
    evidence: {
      ...anthropic.evidence,
      limitsSource: 'pi-market',
      releaseDateBasis: firstListed('@anthropic-ai/sdk 0.129.0'),
      notes: 'forced tool_choice (any/tool) rejected with 400',
      nearestRelative: {
        id: 'claude-sonnet-5',
        ...intelligenceIndex(38.2, 'adaptive, max effort', 'aa'),
        speed: measured(82.788, 92.802, 'max effort', 'aa'),
      },
    },
  },
  {
    ...anthropic,
    id: 'claude-sonnet-4-6',
    displayName: 'Claude Sonnet 4.6',
    tier: 'standard',
    pricing: { ...prices(3, 15, 0.3, 3.75), longContext: null },
    contextWindow: 1_000_000,
    maxInputTokens: null,
    maxOutputTokens: 128_000,
    parameters: {
      ...anthropicAdaptive,
      sampling: 'accepted_when_thinking_disabled',
      efforts: ['low', 'medium', 'high', 'max'],
    },
    marketplaceAliases: ['anthropic/claude-sonnet-4.6'],
    releaseDate: '2026-02-17',
    qualityScores: [liveBench(75.32, 'thinking auto, high effort'), arena(1463, '+-6, 11255 votes')],
    evidence: { ...anthropic.evidence, limitsSource: 'pi-market', releaseDateBasis: 'cline (models.dev release_date)' },
  },
  {
    ...anthropic,
    id: 'claude-haiku-5-5',
    displayName: 'Claude Haiku 5.5',
    tier: 'economy',
    pricing: {
      ...prices(0.1, 0.5, 0.01, 0.125),
      longContext: { aboveInputTokens: 100_000, ...prices(0.5, 2.5, 0.05, 0.625) },
    },
    contextWindow: 1_000_000,
    maxInputTokens: null,
    maxOutputTokens: 128_000,
    parameters: anthropicAdaptive,
    marketplaceAliases: ['anthropic/claude-haiku-5.5'],
    releaseDate: '2026-10-07',
    evidence: {
      ...anthropic.evidence,
      limitsSource: 'pi-market',
      releaseDateBasis: firstListed('@anthropic-ai/sdk 0.132.0'),
      nearestRelative: {
        id: 'claude-haiku-4-5',
        ...intelligenceIndex(16.9, 'reasoning', 'aa'),
        speed: measured(158.798, 14.94, 'reasoning', 'aa'),
      },
    },
  },
  {
    ...anthropic,
    id: 'claude-haiku-4-5',
    displayName: 'Claude Haiku 4.5',
    tier: 'standard',
    pricing: { ...prices(1, 5, 0.1, 1.25), longContext: null },
    contextWindow: 200_000,
    maxInputTokens: null,
    maxOutputTokens: 64_000,
    parameters: anthropicBudget,
    aliases: ['claude-haiku-4-5-20251001'],
    marketplaceAliases: ['anthropic/claude-haiku-4.5'],
    releaseDate: '2025-10-15',
    qualityScores: [
      intelligenceIndex(16.9, 'reasoning', 'aa'),
      liveBench(61.32, 'thinking 64k'),
      liveBench(45.33, 'no thinking'),
    ],
    evidence: {
      ...anthropic.evidence,
      limitsSource: 'pi-market',
      releaseDateBasis: 'cline (models.dev release_date)',
      speed: measured(158.798, 14.94, 'reasoning', 'aa'),
    },
  },
  {
    ...anthropic,
    id: 'claude-sonnet-4-5',
    displayName: 'Claude Sonnet 4.5',
    tier: 'standard',
    pricing: { ...prices(3, 15, 0.3, 3.75), longContext: { aboveInputTokens: 200_000, ...prices(6, 22.5, 0.6, 7.5) } },
    contextWindow: 200_000,
    maxInputTokens: null,
    maxOutputTokens: 64_000,
    parameters: anthropicBudget,
    aliases: ['claude-sonnet-4-5-20250929'],
    marketplaceAliases: ['anthropic/claude-sonnet-4.5'],
    deprecated: true,
    deprecationDate: '2026-11-30',
    successor: 'anthropic/claude-sonnet-4-6',
    releaseDate: '2025-09-29',
    qualityScores: [liveBench(68.19, 'thinking 64k'), liveBench(53.69, 'no thinking'), arena(1453, '+-3, 59693 votes')],
    evidence: {
      ...anthropic.evidence,
      limitsSource: 'pi',
      releaseDateBasis: 'cline (models.dev release_date)',
      deprecationSource: 'anthropic-sdk',
    },
  },
  {
    ...google,
    id: 'gemini-4-argon',
    displayName: 'Gemini 4 Argon',
    tier: 'standard',
    pricing: { ...prices(2, 10, 0.1, null), longContext: null },
    contextWindow: 1_048_576,
    maxInputTokens: null,
    maxOutputTokens: 32_768,
    // Whether it accepts sampling parameters is not published. They are omitted, which never causes a 400.
    parameters: { ...googleLevel, sampling: 'rejected' },
    marketplaceAliases: ['google/gemini-4-argon'],
    releaseDate: '2026-10-13',
    evidence: {
      ...google.evidence,
      limitsSource: 'pi',
      releaseDateBasis:
        'first supported by @ai-sdk/google 4.0.95, published on this date (upper bound on the release date)',
      notes:
        'max_output is the per-request cap of the first-party listing; longer outputs are continued with finishReason CONTINUATION + continuationToken. Listings disagree: opencode 65536, OpenRouter 943718, Vercel 1000000',
    },
  },
  {
    ...google,
    id: 'gemini-3.1-pro-preview',
    displayName: 'Gemini 3.1 Pro Preview',
    tier: 'standard',
    pricing: { ...prices(2, 12, 0.2, null), longContext: { aboveInputTokens: 200_000, ...prices(4, 18, 0.4, null) } },
    contextWindow: 1_048_576,
    maxInputTokens: 1_048_576,
    maxOutputTokens: 65_536,
    parameters: googleLevel,
    marketplaceAliases: ['google/gemini-3.1-pro-preview'],
    releaseDate: '2026-02-19',
    qualityScores: [
      intelligenceIndex(29.7, 'default', 'aa'),
      liveBench(79.93, 'high'),
      arena(1492, '+-5, 22905 votes'),
    ],
    evidence: {
      ...google.evidence,
      limitsSource: 'pi',
      releaseDateBasis: 'cline (models.dev release_date)',
      speed: measured(140.476, 22.205, 'default', 'aa'),
    },
  },
  {
    ...google,
    id: 'gemini-3.8-flash',
    displayName: 'Gemini 3.8 Flash',
    tier: 'economy',
    pricing: { ...prices(0.75, 3.75, 0.075, null), longContext: null },
    contextWindow: 1_048_576,
    maxInputTokens: 1_048_576,
    maxOutputTokens: 65_536,
    parameters: googleLevel,
    marketplaceAliases: ['google/gemini-3.8-flash'],
    releaseDate: '2026-09-02',
    qualityScores: [intelligenceIndex(40.9, 'high', 'aa')],
    evidence: {
      ...google.evidence,
      limitsSource: 'pi',
      releaseDateBasis: 'Gemini deprecations page and cline',
      speed: measured(315.18, 12.432, 'high', 'aa'),
    },
  },
  {
    ...google,
    id: 'gemini-3.5-flash',
    displayName: 'Gemini 3.5 Flash',
    tier: 'standard',
    pricing: { ...prices(1.5, 9, 0.15, null), longContext: null },
    contextWindow: 1_048_576,
    maxInputTokens: 1_048_576,
    maxOutputTokens: 65_536,
    parameters: { ...googleLevel, efforts: ['minimal', 'low', 'medium', 'high'] },
    marketplaceAliases: ['google/gemini-3.5-flash'],
    releaseDate: '2026-05-19',
    qualityScores: [intelligenceIndex(32.6, 'high', 'aa'), liveBench(75.02, 'high')],
    evidence: { ...google.evidence, limitsSource: 'pi', releaseDateBasis: 'models.dev' },
  },
  {
    ...google,
    id: 'gemini-3.5-flash-lite',
    displayName: 'Gemini 3.5 Flash-Lite',
    tier: 'economy',
    pricing: { ...prices(0.3, 2.5, 0.03, null), longContext: null },
    contextWindow: 1_048_576,
    maxInputTokens: 1_048_576,
    maxOutputTokens: 65_536,
    parameters: { ...googleLevel, efforts: ['minimal', 'low', 'medium', 'high'] },
    marketplaceAliases: ['google/gemini-3.5-flash-lite'],
    releaseDate: '2026-07-21',
    evidence: {
      ...google.evidence,
      limitsSource: 'pi',
      releaseDateBasis: 'Gemini deprecations page and cline',
      nearestRelative: { id: 'gemini-3.1-flash-lite-preview', ...liveBench(61.68, 'high'), speed: null },
    },
  },
  {
    ...google,
    id: 'gemini-2.5-pro',
    displayName: 'Gemini 2.5 Pro',
    tier: 'standard',
    pricing: {
      ...prices(1.25, 10, 0.125, null),
      longContext: { aboveInputTokens: 200_000, ...prices(2.5, 15, 0.25, null) },
    },
    contextWindow: 1_048_576,
    maxInputTokens: 1_048_576,
    maxOutputTokens: 65_536,
    parameters: {
      ...googleBudget,
      reasoning: { kind: 'token_budget', minimum: 128, maximum: 32_768, canDisable: false },
    },
    marketplaceAliases: ['google/gemini-2.5-pro'],
    deprecated: true,
    deprecationDate: '2026-12-01',
    successor: 'google/gemini-3.8-flash',
    releaseDate: '2025-06-17',
    qualityScores: [liveBench(58.33, '06-05, high thinking'), arena(1449, '+-3, 109121 votes')],
    evidence: {
      ...google.evidence,
      limitsSource: 'pi',
      releaseDateBasis: 'Gemini deprecations page and cline',
      deprecationSource: 'gemini-dep',
      notes:
        "from the shutdown date Google routes requests to gemini-3.8-flash at that model's price; modelVersion in the response then differs from the requested id",
    },
  },
  {
    ...google,
    id: 'gemini-2.5-flash',
    displayName: 'Gemini 2.5 Flash',
    tier: 'economy',
    pricing: { ...prices(0.3, 2.5, 0.03, null), longContext: null },
    contextWindow: 1_048_576,
    maxInputTokens: 1_048_576,
    maxOutputTokens: 65_536,
    parameters: googleBudget,
    marketplaceAliases: ['google/gemini-2.5-flash'],
    deprecated: true,
    deprecationDate: '2026-12-01',
    successor: 'google/gemini-3.5-flash-lite',
    releaseDate: '2025-06-17',
    qualityScores: [
      intelligenceIndex(13.1, 'reasoning', 'aa'),
      liveBench(53.09, 'preview 09-2025, high thinking'),
      liveBench(47.74, '06-05, high thinking'),
    ],
    evidence: {
      ...google.evidence,
      limitsSource: 'pi',
      releaseDateBasis: 'Gemini deprecations page and cline',
      deprecationSource: 'gemini-dep',
      notes: "from the shutdown date Google routes requests to gemini-3.5-flash-lite at that model's price",
    },
  },
]

/**
 * Stand-ins for models without any public score, chosen by the project: the next lower current model for Astra, the
 * preceding flash model for Argon, a contemporary of the same strength for gpt-4.1.
 */
const standIns: Readonly<Record<string, string>> = {
  'gpt-6-astra': 'gpt-6.1-sol',
  'gemini-4-argon': 'gemini-3.8-flash',
  'gpt-4.1': 'gemini-2.5-flash',
}

/** The intelligence index that counts as quality 1: slightly above the best published one, 57.6. */
const bestIndex = 60

/**
 * Assumption: a model without reasoning starts to answer at once, but no source publishes its time to the first token.
 */
const firstTokenMsWithoutReasoning = 1_000

const toIndex = indexByLiveBench(rows)

/** The 23 models in display order: by provider, most expensive line first. */
export const catalog: readonly Model[] = rows.map(row => ({
  ...row,
  pricing: pricingWithTiers(row),
  figures: figuresOf(row),
}))

/** OpenAI serves its reasoning models in the tier `flex` at half the usual prices. Source: its pricing page, "Flex". */
function pricingWithTiers({ provider, pricing, parameters }: CatalogueRow): Pricing {
  if (provider !== 'openai' || parameters.reasoning.kind !== 'effort') return pricing
  const half = (price: number | null) => price && price / 2
  const halved = <P extends Prices>(own: P): P => ({
    ...own,
    input: own.input / 2,
    output: own.output / 2,
    cachedInput: half(own.cachedInput),
    cacheWrite: half(own.cacheWrite),
  })
  const flex: Rates = { ...halved(pricing), longContext: pricing.longContext && halved(pricing.longContext) }
  return { ...pricing, variants: [priceVariant({ serviceTier: 'flex' }, flex)] }
}

/**
 * Returns routing figures on one scale from metrics that are not comparable directly. Quality is the Artificial
 * Analysis index over `bestIndex` at the highest published effort; without one, the best LiveBench average mapped by
 * the regression line over models with both. Arena's Elo is older and measures preference, so it is displayed but not
 * used. Quality and time to first token thus describe the highest published effort; measurements of live traffic
 * replace them.
 */
function figuresOf(row: CatalogueRow): RoutingFigures {
  const own = indexOf(row.qualityScores)
  const index = own ?? relativeIndex(row)
  const speed = row.evidence.speed ?? nearestSpeed(row)
  return {
    quality: Math.min(1, Math.max(0, index / bestIndex)),
    tokensPerSecond: speed.tokensPerSecond,
    firstTokenMs: row.capabilities.reasoning ? speed.firstTokenSeconds * 1000 : firstTokenMsWithoutReasoning,
    estimated: own === null,
  }
}

function relativeIndex(row: CatalogueRow): number {
  const relative = row.evidence.nearestRelative
  const published = relative === null ? null : indexOf([relative])
  if (published !== null) return published
  const standIn = rows.find(other => other.id === standIns[row.id])
  if (standIn === undefined) throw new Error(`catalog: ${row.id} has no score, no scored relative and no stand-in`)
  return indexOf(standIn.qualityScores) ?? relativeIndex(standIn)
}

/**
 * Returns the speed of the model's predecessor, else of the model of its provider with the nearest price ratio and a
 * known speed.
 */
function nearestSpeed(row: CatalogueRow): MeasuredSpeed {
  const own = row.evidence.nearestRelative?.speed
  if (own) return own
  const distance = (other: CatalogueRow) => Math.abs(Math.log(blendedPrice(other.pricing) / blendedPrice(row.pricing)))
  const known = rows
    .filter(other => other.provider === row.provider)
    .flatMap(other => {
      const speed = other.evidence.speed ?? other.evidence.nearestRelative?.speed
      return speed ? [{ speed, distance: distance(other) }] : []
    })
    .sort((one, other) => one.distance - other.distance)
  const nearest = known[0]
  if (nearest === undefined) throw new Error(`catalog: no speed is known of any model of ${row.provider}`)
  return nearest.speed
}

/** Returns the best score on the index scale; null = neither metric has one. */
function indexOf(scores: readonly QualityScore[]): number | null {
  const published = best(scores, 'artificial_analysis_intelligence_index')
  if (published !== null) return published
  const average = best(scores, 'livebench_global_average')
  return average === null ? null : toIndex(average)
}

/** Returns a least-squares line over the models with both metrics. It rises, so the order within LiveBench is kept. */
function indexByLiveBench(scored: readonly Pick<Model, 'qualityScores'>[]): (average: number) => number {
  const pairs = scored.flatMap(({ qualityScores }) => {
    const index = best(qualityScores, 'artificial_analysis_intelligence_index')
    const average = best(qualityScores, 'livebench_global_average')
    return index === null || average === null ? [] : [{ index, average }]
  })
  const mean = (values: readonly number[]) => values.reduce((sum, value) => sum + value, 0) / values.length
  const averageMean = mean(pairs.map(pair => pair.average))
  const indexMean = mean(pairs.map(pair => pair.index))
  const together = mean(pairs.map(pair => (pair.average - averageMean) * (pair.index - indexMean)))
  const slope = together / mean(pairs.map(pair => (pair.average - averageMean) ** 2))
  return average => indexMean + slope * (average - averageMean)
}

/**
 * Returns the best score of a metric. A score applies to one reasoning effort; the highest effort is the one that all
 * sources publish.
 */
function best(scores: readonly QualityScore[], metric: QualityScore['metric']): number | null {
  const values = scores.filter(score => score.metric === metric).map(score => score.value)
  return values.length === 0 ? null : Math.max(...values)
}

function prices(input: number, output: number, cachedInput: number | null, cacheWrite: number | null): Prices {
  return { input, output, cachedInput, cacheWrite }
}

function intelligenceIndex(value: number, variant: string, source: 'aa' | 'aa-prev'): QualityScore {
  return { metric: 'artificial_analysis_intelligence_index', value, variant, ...dated(source) }
}

function liveBench(value: number, variant: string): QualityScore {
  return { metric: 'livebench_global_average', value, variant, ...dated('livebench') }
}

function arena(value: number, variant: string): QualityScore {
  return { metric: 'arena_text_score', value, variant, ...dated('arena') }
}

function measured(
  tokensPerSecond: number,
  firstTokenSeconds: number,
  variant: string,
  source: 'aa' | 'aa-prev',
): MeasuredSpeed {
  return { tokensPerSecond, firstTokenSeconds, variant, ...dated(source) }
}

function dated(source: Source): { source: string; date: string } {
  return { source, date: sources[source].date }
}

function firstListed(client: string): string {
  return `first listed in the vendor SDK changelog on this date (upper bound on the release date) (${client})`
}
