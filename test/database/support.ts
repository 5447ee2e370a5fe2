import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { UsageRecord } from '../../src/core/usage/usage-record.ts'

/** Creates a clock that only moves when told to. */
export function movableClock(start = Date.UTC(2026, 4, 5, 12)) {
  let time = start
  return {
    now: () => time,
    monotonic: () => time,
    move(milliseconds: number) {
      time += milliseconds
    },
  }
}

export function temporaryFolder(): { readonly path: string; remove(): void } {
  const path = mkdtempSync(join(tmpdir(), 'gateway-test-'))
  return { path, remove: () => rmSync(path, { recursive: true, force: true }) }
}

/** Returns records as the journal has them. */
export const toTexts = (records: readonly UsageRecord[]) => records.map(record => JSON.stringify(record))

export function usageRecord(changes: Partial<UsageRecord> = {}): UsageRecord {
  return {
    request_id: 'req_1',
    account_id: 'acc_1',
    key_id: 'key_1',
    at_ms: Date.UTC(2026, 4, 5, 12),
    provider: 'openai',
    model: 'gpt-test',
    requested_model: 'gateway-ai',
    routing_mode: 'auto',
    strategy: null,
    query_type: 'code',
    streamed: true,
    dialect: 'native',
    status: 'completed',
    error_code: null,
    finish_reason: 'stop',
    input_tokens: 10,
    cached_input_tokens: 0,
    cache_write_tokens: 0,
    output_tokens: 20,
    reasoning_tokens: 0,
    estimated: false,
    billed_microcents: 30,
    reserved_microcents: 50,
    attempts: 1,
    tried: [],
    latency_ms: 5,
    first_token_ms: 2,
    metadata: null,
    ...changes,
  }
}
