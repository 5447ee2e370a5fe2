import type { EnvironmentReader } from './environment.ts'

export type OtlpConfig = {
  readonly endpoint: string
  readonly headers: Readonly<Record<string, string>>
  /** Share of requests that are traced, 0–1. */
  readonly sampleRatio: number
  readonly metricsEveryMs: number
}

const minute = 60_000

/** Reads OpenTelemetry's standard variables; even without an endpoint, so that invalid ones are reported. */
export function readOtlp(read: EnvironmentReader, problems: string[]): OtlpConfig | null {
  const endpoint = read.baseUrl('OTEL_EXPORTER_OTLP_ENDPOINT')
  const headers: Record<string, string> = {}
  for (const pair of (read.secret('OTEL_EXPORTER_OTLP_HEADERS') ?? '').split(',').filter(one => one.trim() !== '')) {
    const [, name, value] = /^\s*([!#$%&'*+.^_`|~0-9A-Za-z-]+)\s*=\s*([\x20-\x7e]*?)\s*$/.exec(pair) ?? []
    if (name === undefined || value === undefined)
      problems.push('OTEL_EXPORTER_OTLP_HEADERS: must be name=value pairs separated by commas')
    else headers[name] = value.includes('%') ? decodedOr(value) : value
  }
  const ratio = read.text('OTEL_TRACES_SAMPLER_ARG') ?? '0.1'
  if (!/^(0|1|[01]?\.\d+)$/.test(ratio) || Number(ratio) > 1)
    problems.push('OTEL_TRACES_SAMPLER_ARG: must be a share of requests from 0 to 1, such as 0.1')
  const metricsEveryMs = read.integer('OTEL_METRIC_EXPORT_INTERVAL', minute, 1_000, 60 * minute)
  return endpoint === null ? null : { endpoint, headers, sampleRatio: Number(ratio), metricsEveryMs }
}

/** Decodes percent-encoding; returns the text unchanged if it is invalid. */
function decodedOr(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}
