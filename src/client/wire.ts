/** What travels, as the gateway's own schemas have it. Written by `bun run client:types`: change those, not this. */

export type ChatDelta = {
  type: 'delta'
  content: string
  reasoning?: string | undefined
  tool_calls?:
    | readonly (
        | {
            index: number
            id: string
            type: 'function'
            function: {
              name: string
              /** JSON as the model wrote it */
              arguments: string
            }
            extra_content?: ExtraContent | undefined
          }
        | {
            index: number
            function: {
              arguments: string
            }
          }
      )[]
    | undefined
}

export type ChatDone = {
  type: 'done'
  request_id: string
  /** `provider/model` that served the request */
  model_used: string
  finish_reason: FinishReason
  /** present if moderation ended the output */
  filtered?: Filtered | undefined
  /** present if the output ended at a cap that the client did not set. `model_limit`: the limit of the model. `default`: the gateway’s cap for requests without one. `account_remaining`: a share of the account’s remaining daily limit. */
  output_cap?: OutputCap | undefined
  tool_calls: readonly ToolCall[]
  usage: ChatUsage
  routing: Routing
  enhancement: Enhancement | null
  web: Web
}

export type ChatEvent = ChatDelta | ChatFiltered | ChatDone | ChatFailed

export type ChatFailed = {
  type: 'error'
  error: ErrorDetail
}

export type ChatFiltered = {
  type: 'filtered'
  /** the moderation layer that ended the output */
  layer: string
  category: string
}

export type ChatMessage =
  | {
      role: 'system'
      content: string | readonly Content[]
      cache_control?: CacheControl | null | undefined
    }
  | {
      role: 'user'
      content:
        | string
        | readonly (
            | Content
            | {
                type: 'image'
                /** an http, https or data: address */
                url: string
                detail?: Detail | null | undefined
                cache_control?: CacheControl | null | undefined
              }
            | {
                type: 'image_url'
                image_url: {
                  /** an http, https or data: address */
                  url: string
                  detail?: Detail | null | undefined
                }
                cache_control?: CacheControl | null | undefined
              }
            | {
                type: 'file'
                file: {
                  /** omitted: send the document in `file_data` */
                  file_id?: null | undefined
                  file_data?: string | null | undefined
                  filename?: string | null | undefined
                }
                cache_control?: CacheControl | null | undefined
              }
          )[]
      cache_control?: CacheControl | null | undefined
    }
  | {
      role: 'assistant'
      content?: string | readonly Content[] | null | undefined
      reasoning?: string | null | undefined
      tool_calls?:
        | readonly {
            id: string
            type?: 'function' | null | undefined
            function: {
              name: string
              arguments: string
            }
            extra_content?:
              | {
                  google?:
                    | {
                        thought_signature?: string | null | undefined
                      }
                    | null
                    | undefined
                }
              | null
              | undefined
          }[]
        | null
        | undefined
      cache_control?: CacheControl | null | undefined
    }
  | {
      role: 'tool'
      content: string | readonly Content[]
      tool_call_id: string
      cache_control?: CacheControl | null | undefined
    }

export type ChatReply = {
  output: string
  request_id: string
  /** `provider/model` that served the request */
  model_used: string
  finish_reason: FinishReason
  /** present if moderation ended the output */
  filtered?: Filtered | undefined
  /** present if the output ended at a cap that the client did not set. `model_limit`: the limit of the model. `default`: the gateway’s cap for requests without one. `account_remaining`: a share of the account’s remaining daily limit. */
  output_cap?: OutputCap | undefined
  tool_calls: readonly ToolCall[]
  usage: ChatUsage
  routing: Routing
  enhancement: Enhancement | null
  web: Web
}

export type ChatRequest = {
  model?: string | null | undefined
  mode?: 'gateway-ai' | null | undefined
  strategy?: Strategy | null | undefined
  stream?: boolean | null | undefined
  stream_mode?: 'buffered' | 'realtime' | null | undefined
  enhance_prompt?: boolean | null | undefined
  test_mode?: boolean | null | undefined
  fallback?: boolean | 'any' | 'same_model' | 'none' | null | undefined
  continue?: 'any' | 'same_model' | 'off' | null | undefined
  fallback_max_cost_factor?: number | null | undefined
  constraints?:
    | {
        zdr?: boolean | undefined
        no_training?: boolean | undefined
        region?: string | readonly string[] | undefined
        providers?: string | readonly string[] | undefined
        ignore_providers?: string | readonly string[] | undefined
      }
    | null
    | undefined
  web?: 'auto' | 'off' | null | undefined
  metadata?: Record<string, string> | null | undefined
  max_output_tokens?: number | null | undefined
  temperature?: number | null | undefined
  top_p?: number | null | undefined
  seed?: number | null | undefined
  stop?: string | readonly string[] | null | undefined
  reasoning_effort?: Effort | null | undefined
  tools?:
    | readonly {
        type: 'function'
        function: {
          /** a name of 1 to 128 letters, digits, `_` or `-` */
          name: string
          description?: string | null | undefined
          parameters?: Parameter | null | undefined
          strict?: boolean | null | undefined
        }
        cache_control?: CacheControl | null | undefined
      }[]
    | null
    | undefined
  tool_choice?:
    | 'auto'
    | 'none'
    | 'required'
    | ToolChoice
    | {
        type: 'allowed_tools'
        allowed_tools: {
          mode: 'auto' | 'required'
          tools: readonly ToolChoice[]
        }
      }
    | null
    | undefined
  response_format?:
    | {
        type: 'text' | 'json_object'
      }
    | {
        type: 'json_schema'
        json_schema: {
          /** a name of 1 to 64 letters, digits, `_` or `-` */
          name: string
          description?: string | null | undefined
          schema?: Parameter | null | undefined
          strict?: boolean | null | undefined
        }
      }
    | null
    | undefined
  messages?: readonly ChatMessage[] | null | undefined
  prompt?: string | null | undefined
}

export type ChatUsage = {
  input_tokens: number
  output_tokens: number
  total_tokens: number
  /** US dollars, to 1e-8 */
  cost_usd: number
  /** US dollars for the attempt that lost a hedge, part of the cost; absent if none did */
  hedge_cost_usd?: number | undefined
  /** US dollars that the provider’s prompt cache saved; negative if writing to it cost more; absent if it was not used */
  cache_saved_usd?: number | undefined
  /** where a text that its upstream cut was continued, and by which model; absent if it was not cut */
  continued?:
    | readonly {
        /** `provider/model` */
        model: string
        /** characters of the text before */
        at: number
      }[]
    | undefined
  cached_input_tokens: number
  reasoning_tokens: number
  /** the gateway estimated the counts: the provider reported none */
  estimated: boolean
  cost: {
    /** US dollars, to 1e-8 */
    model_usd: number
    /** US dollars, to 1e-8 */
    search_usd: number
    /** US dollars, to 1e-8 */
    fetch_usd: number
  }
}

export type DryRun = {
  mode: Mode
  /** constraints in force: of the request, its key, project and account */
  constraints: readonly string[]
  /** rules that changed the requested model, in order */
  rules: readonly {
    rule: string
    owner: 'operator' | 'account'
    kind: 'rewrite' | 'split'
    /** the requested model after it; null = a split left it */
    model: string | null
  }[]
  strategy: Strategy | null
  query_type: QueryType
  /** probability of each query type; the sum is 1 */
  query_type_scores: {
    code: number
    code_algorithm: number
    debugging: number
    analysis: number
    writing: number
    math: number
    creative: number
    planning: number
    comparison: number
    other: number
  }
  complexity: number
  /** expected quality gain of a strong model, as a percentile of reference prompts */
  strong_gain: number
  /** at most six signals that decided `strong_gain`, strongest first */
  difficulty: readonly {
    signal:
      | 'design'
      | 'proof'
      | 'debugging'
      | 'expert_field'
      | 'constraints'
      | 'depth'
      | 'risk'
      | 'planning'
      | 'routine'
      | 'lookup'
      | 'small_talk'
      | 'creative'
      | 'subject'
      | 'shape'
      | 'wording'
      | 'benchmarks'
    /** above 0 raises `strong_gain`, below 0 lowers it */
    weight: number
  }[]
  /** what the last user text consists of: UTF-16 positions, its text parts joined by line feeds */
  segments: readonly {
    kind: 'request' | 'material' | 'frame'
    from: number
    to: number
  }[]
  level: 'light' | 'middle' | 'strong'
  shares: {
    strong: number
    middle: number
  }
  needs_current: boolean
  /** probability that the output depends on the date */
  needs_current_score: number
  /** ISO 639-1; `und` = unknown */
  language: string
  web: {
    search: boolean
    urls: number
  }
  /** tokens to reserve, with the maximum of the web */
  input_tokens: number
  test_mode: boolean
  candidates: readonly RouteCandidate[]
  dropped: readonly {
    /** `provider/model` */
    model: string
    reason: string
  }[]
  learning: {
    /** without learning another model would be the first */
    influenced: boolean
  }
  /** the first model has the beginning of the conversation in its cache */
  kept: boolean
  /** state of the conversation with this turn; null = the request names a model */
  conversation: {
    /** why the turn has its model and its effort */
    reason: 'first' | 'tool_loop' | 'same_task' | 'cached' | 'escalated' | 'better' | 'cheaper' | 'lost'
    turns: number
    /** steps by which trouble has raised the effort of the task */
    raised: number
    /** turns in a row without progress */
    stalled: number
    /** input tokens that the model probably has cached */
    cached_tokens: number
  } | null
  typical_error_pct: number | null
}

export type EmbeddingModel = {
  id: string
  /** `provider/model` */
  name: string
  provider: string
  display_name: string
  pricing: {
    currency: 'USD'
    /** US dollars per million tokens */
    input_per_mtok: number
  }
  max_input_tokens: number
  dimensions: number | null
  minimum_dimensions: number | null
  capabilities: {
    embeddings: true
    dimensions: boolean
  }
  aliases: readonly string[]
  release_date: string | null
  /** the provider is simulated here */
  simulated?: boolean | undefined
}

export type Enhancement = {
  changed: boolean
  enhanced_prompt: string
  query_type: QueryType
}

export type Error = {
  error: ErrorDetail
}

export type ErrorDetail = {
  type:
    | 'invalid_request_error'
    | 'content_policy_violation'
    | 'authentication_error'
    | 'billing_error'
    | 'permission_error'
    | 'not_found_error'
    | 'conflict_error'
    | 'rate_limit_error'
    | 'insufficient_quota'
    | 'upstream_error'
  code:
    | 'invalid_request'
    | 'invalid_json'
    | 'context_length_exceeded'
    | 'unsupported_parameter'
    | 'previous_response_not_found'
    | 'constraints_unmet'
    | 'model_deprecated'
    | 'content_blocked'
    | 'conversation_stopped'
    | 'invalid_api_key'
    | 'invalid_token'
    | 'invalid_credentials'
    | 'two_factor_required'
    | 'payment_required'
    | 'account_paused'
    | 'forbidden'
    | 'two_factor_setup_required'
    | 'model_not_found'
    | 'not_found'
    | 'method_not_allowed'
    | 'conflict'
    | 'already_completed'
    | 'body_too_large'
    | 'upgrade_required'
    | 'requests_per_minute_exceeded'
    | 'concurrent_requests_exceeded'
    | 'request_bytes_exceeded'
    | 'ip_rate_limited'
    | 'daily_tokens_exceeded'
    | 'daily_cost_exceeded'
    | 'monthly_cost_exceeded'
    | 'upstream_rate_limited'
    | 'upstream_failed'
    | 'no_model_available'
    | 'service_unavailable'
    | 'upstream_timeout'
  /** what to do next */
  message: string
  param: string | null
  request_id: string
  /** for a chat request without a serving model: the candidates in order */
  attempts?:
    | readonly {
        /** `provider/model` */
        model: string
        /** why it failed; `skipped_…` = it was not called */
        outcome: string
        duration_ms: number
      }[]
    | undefined
  /** the limit that was reached: of `account`, of `key`, or of `tag:<name>=<value>` */
  limit?: string | undefined
  /** facts that clients of Anthropic act on */
  details?: Record<string, string> | undefined
  /** for a request that its model refused: the code of the provider */
  upstream_code?: string | undefined
  /** for a blocked request: the verdict */
  layer?: string | undefined
  category?: string | undefined
  /** for a repeated chat request: usage of the request with `request_id` */
  usage?:
    | {
        input_tokens: number
        output_tokens: number
        total_tokens: number
        /** US dollars, to 1e-8 */
        cost_usd: number
        estimated: boolean
      }
    | undefined
  /** for another repeated request: ID of the resource that it created */
  result_id?: string | undefined
}

export type Estimate = {
  /** `provider/model` */
  model: string
  /** US dollars, to 1e-8 */
  estimated_cost_usd: number
  confidence: Confidence
  input_tokens: number
  expected_output_tokens: number
  output_from: OutputFrom
  maximum_cost_usd: number | null
  query_type: QueryType
  typical_error_pct: number | null
  models: readonly ModelEstimate[]
}

export type EstimateRequest = {
  messages?: readonly ChatMessage[] | null | undefined
  prompt?: string | null | undefined
  model?: string | null | undefined
  max_output_tokens?: number | null | undefined
  web?: 'auto' | 'off' | null | undefined
}

export type FeedbackRequest = {
  /** ID of a request */
  request_id: string
  /** an integer from 1 to 5 */
  score: number
  is_helpful?: boolean | null | undefined
}

export type Learning = {
  state: State
  entries: number
  since: string | null
  query_types: readonly {
    query_type: string
    requests: number
    best_model: string | null
    confidence: State
  }[]
  enhancement: {
    requests: number
    quality_with: number | null
    quality_without: number | null
  }
  influence: {
    classified_pct: number
    influenced_pct: number
  }
  models: readonly ModelInsight[]
  recommendations: readonly Recommendation[]
}

export type Model = {
  id: string
  /** `provider/model` */
  name: string
  provider: string
  display_name: string
  tier: 'economy' | 'standard' | 'premium'
  pricing: {
    currency: 'USD'
    /** US dollars per million tokens */
    input_per_mtok: number
    /** US dollars per million tokens */
    output_per_mtok: number
    cached_input_per_mtok: number | null
    cache_write_per_mtok: number | null
    long_context: LongContext | null
    /** the first one whose conditions all hold replaces the other prices */
    variants: readonly {
      service_tier: string | null
      hours_utc: readonly string[] | null
      days: readonly ('mon' | 'tue' | 'wed' | 'thu' | 'fri' | 'sat' | 'sun')[] | null
      /** US dollars per million tokens */
      input_per_mtok: number
      /** US dollars per million tokens */
      output_per_mtok: number
      cached_input_per_mtok: number | null
      cache_write_per_mtok: number | null
      long_context: LongContext | null
    }[]
  }
  context_window: number
  max_input_tokens: number | null
  max_output_tokens: number
  capabilities: {
    vision: boolean
    files: boolean
    tools: boolean
    json_schema: boolean
    reasoning: boolean
    streaming: boolean
    web_search: boolean
  }
  reasoning_efforts: readonly Effort[]
  aliases: readonly string[]
  deprecated: boolean
  deprecation_date: string | null
  status: 'current' | 'deprecated' | 'retired'
  successor: string | null
  release_date: string | null
  quality_scores: readonly {
    metric: 'artificial_analysis_intelligence_index' | 'livebench_global_average' | 'arena_text_score'
    value: number
    variant: string
    source: string
    /** a UTC day, or a month if the day is unknown */
    date: string
    attribution: string
  }[]
  speed: {
    output_tokens_per_second: number
    time_to_first_token_seconds: number
    variant: string
    source: string
    /** a UTC day, or a month if the day is unknown */
    date: string
    attribution: string
  } | null
  /** figures that automatic routing uses */
  routing: {
    quality: number
    output_tokens_per_second: number
    time_to_first_token_seconds: number
    /** estimated from a related model, without a public figure of its own */
    estimated: boolean
  }
  /** the provider is simulated here */
  simulated?: boolean | undefined
}

export type ModelEstimate = {
  /** `provider/model` */
  model: string
  /** US dollars, to 1e-8 */
  estimated_cost_usd: number
  confidence: Confidence
  input_tokens: number
  expected_output_tokens: number
  output_from: OutputFrom
  maximum_cost_usd: number | null
}

export type ModelInsight = {
  /** `provider/model` */
  model: string
  query_type: string
  requests: number
  quality: number
  latency_ms: number
  ttft_ms: number | null
  /** US dollars, to 1e-8 */
  cost_usd: number
  rating: number | null
  confidence: State
  /** learned bias on the routing score */
  bias: number
}

export type ModelList = {
  data: readonly Model[]
  /** models for `POST /v1/embeddings` only */
  embedding_models: readonly EmbeddingModel[]
  /** source of a score, by its metric */
  attributions: Attribution
}

export type Rated = {
  accepted: boolean
  query_type: string
  /** `provider/model` */
  model: string
}

export type Recommendation = {
  query_type: string
  /** `provider/model` */
  model: string
  reason: string
  expected_quality_change: number
  expected_cost_change_pct: number
}

export type RouteCandidate = {
  /** `provider/model` */
  model: string
  /** reasoning effort that it would be called with; null = its default */
  effort: Effort | null
  score: number
  /** null if the request names a model: there are no scores then */
  parts: {
    quality: number
    cost: number
    speed: number
    /** penalty for recent failures */
    reliability: number
    /** effect of learning, health and the monthly soft cap */
    adjustment: number
  } | null
  /** why the candidate has this place in the order of calls */
  place:
    | 'requested'
    | 'score'
    | 'price'
    | 'other_provider'
    | 'cached'
    | 'conversation'
    | 'explored'
    | 'output_limit'
    | 'unhealthy'
  reasons: readonly string[]
  estimated_cost_usd: number
  /** an own key of the account is called first, at no cost here */
  own_key: boolean
  health: 'healthy' | 'degraded' | 'unhealthy'
  /** null = healthy */
  health_detail: {
    /** cause of its last failure */
    cause: string | null
    /** share of failures among its latest attempts */
    failure_rate: number
    /** since when it has this health */
    since: string | null
  } | null
  figures: {
    quality: number
    first_token_ms: number
    tokens_per_second: number
    error_rate: number
    /** recent attempts behind these figures */
    measured_tries: number
  }
}

export type ToolCall = {
  id: string
  type: 'function'
  function: {
    name: string
    /** JSON as the model wrote it */
    arguments: string
  }
  extra_content?: ExtraContent | undefined
}

type ExtraContent = {
  google: Google
}

type Google = {
  thought_signature: string
}

type FinishReason = 'stop' | 'length' | 'tool_calls' | 'content_filter'

type Filtered = {
  /** the moderation layer that ended the output */
  layer: string
  category: string
}

type OutputCap = {
  tokens: number
  limited_by: LimitedBy
}

type LimitedBy = 'model_limit' | 'default' | 'account_remaining'

type Routing = {
  mode: Mode
  /** model that the request named; `gateway-ai` = automatic routing. A fallback served if `model_used` is another one */
  requested_model?: string | undefined
  strategy: Strategy | null
  query_type: QueryType | null
  complexity: number | null
  /** the learned bias of this account changed the choice */
  learned: boolean
  /** reasoning effort of the model; null = its default */
  effort: Effort | null
  attempts: readonly Attempt[]
}

type Mode = 'auto' | 'manual'

type Strategy = 'balanced' | 'quality' | 'cost' | 'speed'

type QueryType =
  | 'code'
  | 'code_algorithm'
  | 'debugging'
  | 'analysis'
  | 'writing'
  | 'math'
  | 'creative'
  | 'planning'
  | 'comparison'
  | 'other'

type Effort = 'none' | 'minimal' | 'low' | 'medium' | 'high' | 'xhigh' | 'max'

type Attempt = {
  /** `provider/model` */
  model: string
  /** `served`, or the reason for the failure */
  outcome: string
}

type Web = {
  searched: boolean
  sources: readonly Source[]
  /** sources that could not be read */
  left_out: readonly LeftOut[]
}

type Source = {
  url: string
  title: string
}

type LeftOut = {
  url: string | null
  code: Code
}

type Code = 'refused' | 'unreachable' | 'too_slow' | 'unreadable'

type Content = {
  type: 'text'
  text: string
  cache_control?: CacheControl | null | undefined
}

type CacheControl = {
  type: 'ephemeral'
  ttl?: Ttl | null | undefined
}

type Ttl = '5m' | '1h'

type Detail = 'auto' | 'low' | 'high' | 'original'

type Parameter = Record<string, unknown>

type ToolChoice = {
  type: 'function'
  function: {
    /** a name of 1 to 128 letters, digits, `_` or `-` */
    name: string
  }
}

type Confidence = 'high' | 'medium' | 'low'

type OutputFrom = 'cap' | 'table' | 'traffic' | 'account'

type State = 'cold_start' | 'warm_up' | 'established'

type LongContext = {
  above_input_tokens: number
  /** US dollars per million tokens */
  input_per_mtok: number
  /** US dollars per million tokens */
  output_per_mtok: number
  cached_input_per_mtok: number | null
  cache_write_per_mtok: number | null
}

type Attribution = Record<string, string>
